import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Writable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { TrawlError } from '../errors.js';
import { fileMode, kindOf, randomName } from './durable.js';
import { errnoOf } from './held.js';
import { assertPathSegment, pagePattern } from './names.js';

export interface ExportOptions {
  /** The results directory. */
  readonly dir: string;
  readonly batch: string;
  /** Left open: it may be stdout. */
  readonly out: Writable;
  /** Default true: only scrapes with an outcome, whose pages are all there. */
  readonly onlySettled?: boolean;
}

export interface ExportSummary {
  readonly scrapes: number;
  readonly items: number;
  /** As written to `out`, unpacked. */
  readonly bytes: number;
}

const newline = 0x0a;

/**
 * Streams the items of a batch as NDJSON: scrapes in the order of their ids (by byte), pages in their order, packed or not. Holds one
 * chunk in memory and waits while `out` is full. A reader that went away (EPIPE) ends it quietly with what was written.
 * @throws TrawlError `input_unreadable` when there is no such batch or a page cannot be read
 */
export async function exportBatch(options: ExportOptions): Promise<ExportSummary> {
  const { out, onlySettled = true } = options;
  const batchDir = join(resolve(options.dir), `batch=${assertPathSegment('batch', options.batch)}`);
  const sum = { scrapes: 0, items: 0, bytes: 0 };
  // Failures come back from each write; without a listener the event that follows them would end the process.
  const ignore = (): void => undefined;
  out.on('error', ignore);
  try {
    for (const scrapeDir of await scrapeDirs(batchDir)) {
      const names = await readdir(scrapeDir);
      if (onlySettled && !names.includes('outcome.json')) continue;
      sum.scrapes += 1;
      for (const name of names.filter((each) => pagePattern.test(each)).sort()) {
        const written = await copyPage(join(scrapeDir, name), out);
        sum.items += written.items;
        sum.bytes += written.bytes;
      }
    }
    out.off('error', ignore);
  } catch (error) {
    if (!(error instanceof OutputError)) throw error;
    if (!error.readerGone) throw error.cause;
  }
  return sum;
}

/** `export`: to a file, which appears under its name once it is whole, or to `stdout` when `file` is null. */
export async function runExport(options: {
  readonly dir: string;
  readonly batch: string;
  readonly file: string | null;
  readonly stdout: Writable;
}): Promise<ExportSummary> {
  const { dir, batch, file, stdout } = options;
  if (file === null) return exportBatch({ dir, batch, out: stdout });
  const draft = `${resolve(file)}${randomName('.tmp-')}`;
  const out = createWriteStream(draft, { flags: 'wx', mode: fileMode, flush: true });
  try {
    // Waited for from the start: a file that cannot be opened says so before the first write.
    const [summary] = await Promise.all([
      exportBatch({ dir, batch, out }).finally(() => out.end()),
      finished(out, { readable: false }),
    ]);
    await rename(draft, resolve(file));
    return summary;
  } catch (error) {
    out.destroy();
    await rm(draft, { force: true });
    if (error instanceof TrawlError) throw error;
    const reason = errnoOf(error) ?? 'unknown error';
    throw new TrawlError('sink_unwritable', `Cannot write ${file} (${reason})`, { cause: error });
  }
}

/** Directories only: a symbolic link in their place is not ours. */
async function scrapeDirs(batchDir: string): Promise<string[]> {
  if ((await kindOf(batchDir)) !== 'dir') {
    throw new TrawlError('input_unreadable', `There are no results of this batch at ${batchDir}`, {
      hint: 'trawl status lists the batches that are known.',
    });
  }
  const entries = await readdir(batchDir, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory() && entry.name.startsWith('scrape='));
  return names.map((entry) => join(batchDir, entry.name)).sort();
}

async function copyPage(path: string, out: Writable): Promise<{ items: number; bytes: number }> {
  let items = 0;
  let bytes = 0;
  const count = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of chunks) {
      await send(out, chunk);
      bytes += chunk.length;
      for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, at + 1)) items += 1;
    }
  };
  try {
    const file = createReadStream(path);
    if (path.endsWith('.gz')) await pipeline(file, createGunzip(), count);
    else await pipeline(file, count);
  } catch (error) {
    if (error instanceof OutputError) throw error;
    throw new TrawlError('input_unreadable', `Cannot read the page ${path}`, { cause: error });
  }
  return { items, bytes };
}

/** Tells a failed write to `out` from a failed read of a page. */
class OutputError extends Error {
  constructor(override readonly cause: Error) {
    super(cause.message);
  }

  get readerGone(): boolean {
    const code = 'code' in this.cause ? this.cause.code : undefined;
    return code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED';
  }
}

/** Resolves when the chunk has left, so no more than one is ever waiting. */
function send(out: Writable, chunk: Buffer): Promise<void> {
  return new Promise((done, fail) => {
    out.write(chunk, (error) => (error ? fail(new OutputError(error)) : done()));
  });
}
