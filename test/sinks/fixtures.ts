import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll } from 'vitest';

export { lines, outcome, page, target } from './writing.js';

/** A fresh directory, removed when the file's tests are done. */
export async function tempDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'trawl-sink-'));
  made.push(dir);
  return dir;
}
const made: string[] = [];
afterAll(() => Promise.all(made.map((dir) => rm(dir, { recursive: true, force: true }))));

/** Pages of a directory in name order, as lines. */
export async function linesIn(dir: string): Promise<string[]> {
  const all: string[] = [];
  for (const name of (await readdir(dir)).filter((each) => each.startsWith('page-')).sort()) {
    const raw = await readFile(join(dir, name));
    const text = (name.endsWith('.gz') ? gunzipSync(raw) : raw).toString();
    if (text !== '') all.push(...text.slice(0, -1).split('\n'));
  }
  return all;
}

/** Unpublished leftovers anywhere below. */
export async function litter(dir: string): Promise<string[]> {
  const names = await readdir(dir, { recursive: true });
  return names.filter((name) => /(^|\/)\.(tmp|new|probe)-/.test(name));
}
