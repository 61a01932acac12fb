import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createFileSink } from '../../src/sinks/file.js';
import { PageReader } from '../../src/sinks/page-reader.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'trawl-pages-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function write(lines: readonly string[][], gzip = false): Promise<PageReader> {
  const sink = createFileSink({ dir, gzip });
  const target = { batch: 'b', id: 'a', attempt: 1, digest: 'd' };
  await sink.begin(target);
  for (const [index, page] of lines.entries())
    await sink.writePage(target, { index, offset: 0, lines: page });
  return new PageReader(dir);
}

/** All of a page, read in parts. */
async function whole(reader: PageReader, bytes: number): Promise<string[]> {
  const parts: string[] = [];
  for (let offset: number | null = 0; offset !== null; ) {
    const part = await reader.read('b', 'a', 0, offset, bytes);
    if (part === null) throw new Error('no such page');
    parts.push(part.data.toString());
    offset = part.next;
  }
  return parts;
}

describe('pages of the file sink', () => {
  it('are listed by number, as far as they go', async () => {
    const before = Date.now() - 1000;
    const reader = await write([['1'], ['2', '3'], ['4']]);
    const listed = await reader.list('b', 'a', 1, 10);
    expect(listed.map(({ index, bytes }) => [index, bytes])).toEqual([
      [1, 4],
      [2, 2],
    ]);
    for (const { writtenAt } of listed) expect(writtenAt).toBeGreaterThan(before);
    expect(await reader.list('b', 'a', 0, 2)).toHaveLength(2);
    expect(await reader.list('b', 'nobody', 0, 2)).toEqual([]);
  });

  it.each([false, true])('are read in whole lines, packed: %s', async (gzip) => {
    const lines = Array.from({ length: 100 }, (_, index) => `{"n":${index},"text":"Müller €"}`);
    const reader = await write([lines], gzip);
    const parts = await whole(reader, 500);
    expect(parts.join('')).toBe(`${lines.join('\n')}\n`);
    expect(parts.length).toBeGreaterThan(6);
    for (const part of parts) {
      expect(part.endsWith('\n')).toBe(true);
      expect(Buffer.byteLength(part)).toBeLessThanOrEqual(500);
    }
  });

  it.each([false, true])('a line longer than a part is cut between characters, packed: %s', async (gzip) => {
    const line = '€'.repeat(1000);
    const reader = await write([[line]], gzip);
    const parts = await whole(reader, 100);
    expect(parts.join('')).toBe(`${line}\n`);
    for (const part of parts) expect(part).not.toContain('\ufffd');
  });

  it('beyond the end there is nothing, and no page is no page', async () => {
    const reader = await write([['1']]);
    expect(await reader.read('b', 'a', 0, 999, 10)).toEqual({ data: Buffer.alloc(0), next: null });
    expect(await reader.read('b', 'a', 7, 0, 10)).toBeNull();
    expect(await reader.read('b', 'nobody', 0, 0, 10)).toBeNull();
  });

  it('links are not followed, and names that lead elsewhere are refused', async () => {
    const reader = await write([['1']]);
    writeFileSync(join(dir, 'secret'), 'secret\n');
    symlinkSync(join(dir, 'secret'), join(dir, 'batch=b', 'scrape=a', 'page-000001.ndjson'));
    expect(await reader.read('b', 'a', 1, 0, 10)).toBeNull();
    mkdirSync(join(dir, 'elsewhere'));
    writeFileSync(join(dir, 'elsewhere', 'page-000000.ndjson'), 'secret\n');
    symlinkSync(join(dir, 'elsewhere'), join(dir, 'batch=b', 'scrape=link'));
    expect(await reader.read('b', 'link', 0, 0, 10)).toBeNull();
    await expect(reader.read('..', 'a', 0, 0, 10)).rejects.toMatchObject({ code: 'job_invalid' });
    await expect(reader.read('b', '../../etc', 0, 0, 10)).rejects.toMatchObject({ code: 'job_invalid' });
  });
});
