import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createFileSink } from '../../src/sinks/file.js';
import { lines, linesIn, litter, outcome, page, target, tempDir } from './fixtures.js';

/** Compiled once: a process that compiles its own TypeScript takes ten times as long to start, and there are many of them. */
let script: string;
beforeAll(async () => {
  const out = await tempDir();
  const source = fileURLToPath(new URL('writer.child.ts', import.meta.url));
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const options = [
    '--ignoreConfig',
    '--noCheck',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--types',
    'node',
  ];
  execFileSync(
    join(root, 'node_modules/.bin/tsc'),
    [...options, '--rootDir', root, '--outDir', out, source],
    { cwd: root },
  );
  await writeFile(join(out, 'package.json'), '{"type":"module"}');
  script = join(out, 'test/sinks/writer.child.js');
});

const children = new Set<ChildProcess>();
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

/** A writer that has loaded and is about to begin. */
async function writer(mode: 'write' | 'retire', dir: string, gzip: boolean): Promise<ChildProcess> {
  const child = spawn(process.execPath, [script, mode, dir, String(gzip)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.add(child);
  await once(child.stdout, 'data');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

const fivePages = [0, 1, 2, 3, 4].flatMap((index) => lines(index));

describe('file sink: a writer killed anywhere', () => {
  it.each([false, true])('leaves each item exactly once after the replay (gzip: %s)', async (gzip) => {
    const dir = await tempDir();
    for (const afterMs of [2, 15, 40]) {
      const child = await writer('write', dir, gzip);
      await delay(afterMs);
      await kill(child);
      // What a reader sees at this moment is whole: every visible page can be read to its end and every outcome parses.
      const sink = createFileSink({ dir, gzip });
      for (const name of await readdir(join(dir, 'batch=leads')).catch(() => [])) {
        const seen = await linesIn(join(dir, 'batch=leads', name));
        expect(fivePages.slice(0, seen.length)).toEqual(seen);
        const found = await sink.find('leads', name.slice('scrape='.length));
        if (found) expect(seen).toEqual(fivePages);
      }
    }
    const sink = createFileSink({ dir, gzip });
    for (let at = 0; at < 12; at++) {
      const of = target(`s-${at}`);
      await sink.begin(of);
      for (let index = 0; index < 5; index++) await sink.writePage(of, page(index));
      await sink.settle(of, outcome(of));
      expect(await linesIn(sink.destination(of))).toEqual(fivePages);
    }
    expect(await litter(dir)).toEqual([]);
  });

  it('leaves a retirement that the next process finishes', async () => {
    const { dir, sink, place, old } = await manyPages();
    for (const afterMs of [1, 4, 9]) {
      const child = await writer('retire', dir, false);
      await delay(afterMs);
      await kill(child);
    }
    await sink.begin(target('many', 2));
    expect(await linesIn(join(place, '.attempts', '1'))).toEqual(old);
    expect(await linesIn(place)).toEqual([]);
  });
});

describe('file sink: a process frozen while it retires an attempt', () => {
  it.each([1, 5, 12])(
    'carries off nothing of the new attempt when it wakes (frozen after %i ms)',
    async (afterMs) => {
      const { dir, sink, place, old } = await manyPages();
      const child = await writer('retire', dir, false);
      await delay(afterMs);
      child.kill('SIGSTOP');
      const third = target('many', 3);
      await sink.begin(third);
      const fresh = Array.from({ length: 100 }, (_, index) => page(index, 'new'));
      await Promise.all(fresh.map((each) => sink.writePage(third, each)));
      const gone = once(child, 'exit');
      child.kill('SIGCONT');
      expect(await gone).toEqual([0, null]);
      expect(await linesIn(place)).toEqual(fresh.flatMap((each) => each.lines));
      // The old pages are all kept, under the attempt that wrote them.
      expect(await linesIn(join(place, '.attempts', '1'))).toEqual(old);
    },
  );
});

async function manyPages() {
  const dir = await tempDir();
  const sink = createFileSink({ dir, gzip: false });
  const pages = Array.from({ length: 100 }, (_, index) => page(index, 'old'));
  await Promise.all(pages.map((each) => sink.writePage(target('many'), each)));
  const place = sink.destination(target('many'));
  return { dir, sink, place, old: pages.flatMap((each) => each.lines) };
}
