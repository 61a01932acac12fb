import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { exportBatch, runExport } from '../../src/sinks/export.js';
import { createFileSink } from '../../src/sinks/file.js';
import { lines, outcome, page, target, tempDir } from './fixtures.js';

async function batch(): Promise<string> {
  const dir = await tempDir();
  const write = async (id: string, gzip: boolean, settled: boolean) => {
    const sink = createFileSink({ dir, gzip });
    for (const index of [0, 1]) await sink.writePage(target(id), page(index, id));
    if (settled) await sink.settle(target(id), outcome(target(id)));
  };
  await write('b', true, true);
  await write('a', false, true);
  await write('c', false, false);
  return dir;
}

function collector(options: { highWaterMark?: number } = {}) {
  const chunks: Buffer[] = [];
  const out = new Writable({
    ...options,
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      setImmediate(done);
    },
  });
  return { out, text: () => Buffer.concat(chunks).toString() };
}

const expected = ['a', 'b'].flatMap((id) => [...lines(0, id), ...lines(1, id)]);

describe('export', () => {
  it('streams settled scrapes in the order of their ids, packed or not', async () => {
    const { out, text } = collector();
    const summary = await exportBatch({ dir: await batch(), batch: 'leads', out });
    expect(text()).toBe(`${expected.join('\n')}\n`);
    expect(summary).toEqual({ scrapes: 2, items: 40, bytes: Buffer.byteLength(text()) });
    expect(out.writableEnded).toBe(false);
  });

  it('takes unsettled scrapes too when asked', async () => {
    const { out } = collector();
    const summary = await exportBatch({ dir: await batch(), batch: 'leads', out, onlySettled: false });
    expect(summary).toMatchObject({ scrapes: 3, items: 60 });
  });

  it('never has more than one chunk waiting for a slow reader', async () => {
    const dir = await tempDir();
    const sink = createFileSink({ dir, gzip: true });
    const big = Array.from({ length: 2000 }, (_, n) => JSON.stringify({ n, pad: 'x'.repeat(2000) }));
    await sink.writePage(target('big'), { index: 0, offset: 0, lines: big });
    await sink.settle(target('big'), outcome(target('big')));
    let most = 0;
    const out = new Writable({
      highWaterMark: 1,
      write(_chunk, _encoding, done) {
        most = Math.max(most, out.writableLength);
        setImmediate(done);
      },
    });
    expect(await exportBatch({ dir, batch: 'leads', out })).toMatchObject({ items: 2000 });
    expect(most).toBeLessThanOrEqual(65_536);
  });

  it('ends quietly when the reader goes away', async () => {
    const gone = new Writable({
      write(_chunk, _encoding, done) {
        done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
      },
    });
    expect(await exportBatch({ dir: await batch(), batch: 'leads', out: gone })).toMatchObject({ items: 0 });
    const destroyed = new PassThrough();
    destroyed.destroy();
    expect(await exportBatch({ dir: await batch(), batch: 'leads', out: destroyed })).toMatchObject({
      items: 0,
    });
  });

  it('says so when the output fails for another reason', async () => {
    const full = new Writable({ write: (_chunk, _encoding, done) => done(new Error('no room')) });
    await expect(exportBatch({ dir: await batch(), batch: 'leads', out: full })).rejects.toThrow('no room');
  });

  it('names the page that cannot be read', async () => {
    const dir = await batch();
    await writeFile(join(dir, 'batch=leads/scrape=b/page-000001.ndjson.gz'), 'not gzip');
    const broken = exportBatch({ dir, batch: 'leads', out: collector().out });
    await expect(broken).rejects.toMatchObject({
      code: 'input_unreadable',
      message: expect.stringContaining('scrape=b/page-000001.ndjson.gz'),
    });
  });

  it('does not follow symbolic links to scrapes', async () => {
    const dir = await batch();
    await symlink(join(dir, 'batch=leads/scrape=a'), join(dir, 'batch=leads/scrape=zz'));
    expect(await exportBatch({ dir, batch: 'leads', out: collector().out })).toMatchObject({ scrapes: 2 });
  });

  it.each([
    ['never-run', 'input_unreadable'],
    ['../leads', 'job_invalid'],
  ])('refuses the batch %j', async (name, code) => {
    const refused = exportBatch({ dir: await batch(), batch: name, out: collector().out });
    await expect(refused).rejects.toMatchObject({ code });
  });
});

describe('export to a file', () => {
  it('shows the file once it is whole', async () => {
    const dir = await batch();
    const file = join(await tempDir(), 'items.ndjson');
    const { out } = collector();
    expect(await runExport({ dir, batch: 'leads', file, stdout: out })).toMatchObject({ items: 40 });
    expect(await readFile(file, 'utf8')).toBe(`${expected.join('\n')}\n`);
  });

  it('writes to stdout without a file', async () => {
    const { out, text } = collector();
    await runExport({ dir: await batch(), batch: 'leads', file: null, stdout: out });
    expect(text().split('\n')).toHaveLength(41);
  });

  it('leaves nothing behind when it fails', async () => {
    const folder = await tempDir();
    const { out } = collector();
    const missing = runExport({ dir: folder, batch: 'none', file: join(folder, 'out'), stdout: out });
    await expect(missing).rejects.toMatchObject({ code: 'input_unreadable' });
    await mkdir(join(folder, 'taken'));
    const dir = await batch();
    const denied = runExport({ dir, batch: 'leads', file: join(folder, 'no/such/place'), stdout: out });
    await expect(denied).rejects.toMatchObject({
      code: 'sink_unwritable',
      message: expect.stringContaining('ENOENT'),
    });
    expect(await readdir(folder)).toEqual(['taken']);
  });
});
