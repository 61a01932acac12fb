import { lstat, readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gunzip as gunzipCallback, gzip as gzipCallback } from 'node:zlib';
import type { Logger } from 'pino';
import { TrawlError } from '../errors.js';
import { makeFolders } from '../folders.js';
import type { OutcomeDocument } from '../scrape/types.js';
import {
  highestAttempt,
  type OpenAttempt,
  openAttempt,
  parseObject,
  readAttempt,
  superseded,
  sweep,
  sweepOpen,
  unpublished,
} from './attempts.js';
import { type Sink, SinkHeldError, type SinkPage, type SinkRecord, type SinkTarget } from './contract.js';
import {
  DirectorySync,
  dirMode,
  kindOf,
  linkOnce,
  makeDir,
  randomName,
  readSmall,
  removeFile,
  removeStale,
  writeDurably,
} from './durable.js';
import { asHeld, errnoOf, notADirectory } from './held.js';
import { assertPathSegment, pageName, recordName } from './names.js';

const gzipBuffer = promisify(gzipCallback);
const gunzipBuffer = promisify(gunzipCallback);
/** Far above any outcome document (`meta` is at most 2 KB); more than that is not one of ours. */
const outcomeBytes = 1_048_576;
const staleProbeMs = 3_600_000;

const rememberedPlaces = 10_000;

interface Entry extends OpenAttempt {
  /** This process made the attempt, and the directory it lies in; false: a crash may have left something there. */
  readonly made: boolean;
  /** Whether the directories above are known to be durable. */
  anchored: boolean;
}

const entryKey = ({ batch, id, attempt }: SinkTarget): string => `${batch}/${id}/${attempt}`;

export interface FileSinkOptions {
  /** Absolute or relative to the working directory; made once when it is not there. */
  readonly dir: string;
  /** Format of pages from the next attempt on; an attempt keeps the format it began with. */
  readonly gzip: boolean;
  readonly log?: Pick<Logger, 'info'>;
}

/** Results as files in hive partitions (design A5). The rules between processes stand in `attempts.ts`. */
export function createFileSink(options: FileSinkOptions): Sink {
  return new FileSink(options);
}

class FileSink implements Sink {
  readonly name = 'file';
  readonly #base: string;
  readonly #gzip: boolean;
  readonly #log: Pick<Logger, 'info'> | undefined;
  readonly #directories = new DirectorySync();
  /** Once seen, a base that is gone was unmounted or removed: making it anew would fill the disk below the mount. */
  #baseSeen = false;
  readonly #entered = new Map<string, Entry>();
  readonly #batches = new Set<string>();

  constructor({ dir, gzip, log }: FileSinkOptions) {
    this.#base = resolve(dir);
    this.#gzip = gzip;
    this.#log = log;
  }

  begin(target: SinkTarget): Promise<void> {
    return this.#guard(async () => {
      const key = entryKey(target);
      const known = this.#entered.get(key);
      // Entered before, and nobody has closed it since.
      if (known && known.digest === target.digest && (await kindOf(known.open)) === 'dir') return;
      this.#entered.delete(key);
      const { open, made } = await this.#enter(target);
      if (!made) await sweep(this.#scrapeDir(target), open);
    });
  }

  writePage(target: SinkTarget, page: SinkPage): Promise<{ existed: boolean; bytes: number; lines: number }> {
    return this.#guard(async () => {
      const plain = Buffer.from(page.lines.length === 0 ? '' : `${page.lines.join('\n')}\n`);
      let packed: Buffer | undefined;
      let path = '';
      const { existed, bytes } = await this.#publish(target, async (attempt) => {
        if (attempt.gzip) packed ??= await gzipBuffer(plain);
        path = join(this.#scrapeDir(target), pageName(page.index, attempt.gzip));
        return { path, data: packed ?? plain };
      });
      return { existed, bytes, lines: existed ? (await measure(path)).items : page.lines.length };
    });
  }

  findPage(target: SinkTarget, index: number): Promise<{ items: number; bytes: number } | null> {
    return this.#guard(async () => {
      const { gzip } = await this.#enter(target);
      try {
        return await measure(join(this.#scrapeDir(target), pageName(index, gzip)));
      } catch (error) {
        if (errnoOf(error) === 'ENOENT') return null;
        throw error;
      }
    });
  }

  writeRecord(target: SinkTarget, record: SinkRecord): Promise<{ existed: boolean; bytes: number }> {
    return this.#guard(() =>
      this.#publish(target, async () => {
        const dir = join(this.#scrapeDir(target), 'records');
        if (await makeDir(dir)) await this.#directories.sync(this.#scrapeDir(target));
        return { path: join(dir, recordName(record.key, record.contentType)), data: record.body };
      }),
    );
  }

  settle(target: SinkTarget, outcome: OutcomeDocument): Promise<OutcomeDocument> {
    return this.#guard(async () => {
      const path = join(this.#scrapeDir(target), 'outcome.json');
      const data = Buffer.from(`${JSON.stringify(outcome, null, 2)}\n`);
      try {
        const { existed } = await this.#publish(target, async () => ({ path, data }));
        const entry = this.#entered.get(entryKey(target));
        this.#entered.delete(entryKey(target));
        if (entry) await sweepOpen(entry.open);
        if (!existed) return outcome;
      } catch (error) {
        // Settled before a later attempt began: the document went to the archive and is still the one that counts.
        const archived = isSuperseded(error) ? await this.#archivedOutcome(target) : null;
        if (archived) return archived;
        throw error;
      }
      const durable = await readOutcome(path);
      if (durable?.attempt !== target.attempt) throw superseded(target);
      return durable;
    });
  }

  find(batch: string, id: string): Promise<{ outcome: OutcomeDocument; digest: string | null } | null> {
    return this.#guard(async () => {
      const dir = this.#scrapeDir({ batch, id });
      const kind = await kindOf(dir);
      if (kind === 'other' || (await kindOf(dirname(dir))) === 'other') throw notADirectory(dir);
      if (kind === 'none') return this.#orGone(null);
      const outcome = await readOutcome(join(dir, 'outcome.json'));
      if (!outcome) return this.#orGone(null);
      return { outcome, digest: (await readAttempt(dir, outcome.attempt))?.digest ?? null };
    });
  }

  lastAttempt(batch: string, id: string): Promise<number> {
    return this.#guard(async () => (await highestAttempt(this.#scrapeDir({ batch, id }))) || this.#orGone(0));
  }

  destination(target: Pick<SinkTarget, 'batch' | 'id'>): string {
    return this.#scrapeDir(target);
  }

  check(): Promise<void> {
    return this.#guard(async () => {
      await this.#ensureBase();
      await this.#removeOldProbes();
      const probe = join(this.#base, randomName('.probe-'));
      const second = `${probe}-link`;
      try {
        await writeDurably(probe, Buffer.alloc(4096));
        await linkOnce(probe, second, this.#base);
        if (await linkOnce(probe, second, this.#base)) {
          throw new SinkHeldError(
            'other',
            `${this.#base}: a hard link replaced an existing file; pages would be lost`,
          );
        }
        await this.#directories.sync(this.#base);
      } finally {
        await Promise.all([removeFile(probe), removeFile(second)]);
      }
    });
  }

  async close(): Promise<void> {
    // Nothing is kept open between calls.
  }

  #scrapeDir({ batch, id }: Pick<SinkTarget, 'batch' | 'id'>): string {
    return join(
      this.#base,
      `batch=${assertPathSegment('batch', batch)}`,
      `scrape=${assertPathSegment('id', id)}`,
    );
  }

  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw asHeld(error, this.#base);
    }
  }

  /**
   * Writes beside, syncs, links to the final name, syncs the directory. The present file wins, and its entry is synced too: who
   * linked it may have died before doing so. ENOENT means that somebody swept or retired under us: look again from the top.
   */
  async #publish(
    target: SinkTarget,
    plan: (attempt: OpenAttempt) => Promise<{ path: string; data: Buffer }>,
  ): Promise<{ existed: boolean; bytes: number }> {
    for (let tries = 0; ; tries++) {
      const entry = await this.#enter(target);
      const { path, data } = await plan(entry);
      const draft = join(entry.open, randomName(unpublished));
      try {
        await writeDurably(draft, data);
        const made = await linkOnce(draft, path, this.#base);
        await Promise.all([removeFile(draft), this.#makeEntriesDurable(target, entry, path)]);
        return { existed: !made, bytes: made ? data.length : (await lstat(path)).size };
      } catch (error) {
        await removeFile(draft).catch(() => undefined);
        if (errnoOf(error) !== 'ENOENT' || tries === 4) throw error;
        this.#entered.delete(entryKey(target));
      }
    }
  }

  /**
   * The attempt, opened when it is not; every directory on the way is a real one. Once entered it is remembered: being out of
   * date shows when its `open/` is gone, so no further look is needed before a write.
   */
  async #enter(target: SinkTarget): Promise<Entry> {
    const key = entryKey(target);
    const known = this.#entered.get(key);
    if (known && known.digest === target.digest) return known;
    const dir = this.#scrapeDir(target);
    const fresh = await this.#makeScrapeDir(dir);
    const { attempt, made, moved } = await openAttempt(dir, target, this.#gzip, this.#directories, fresh);
    if (moved > 0) {
      const { batch, id } = target;
      this.#log?.info(
        { batch, id, attempt: target.attempt, moved },
        'moved the results of an earlier attempt to .attempts',
      );
    }
    const entry = { ...attempt, made: made && fresh, anchored: false };
    this.#entered.set(key, entry);
    for (const oldest of this.#entered.keys()) {
      if (this.#entered.size <= rememberedPlaces) break;
      this.#entered.delete(oldest);
    }
    return entry;
  }

  /** The file's entry and, once an attempt, those above: a durable page in a directory that a power failure takes is no use. */
  async #makeEntriesDurable(target: SinkTarget, entry: Entry, path: string): Promise<void> {
    const dir = this.#scrapeDir(target);
    const dirs = new Set(entry.anchored ? [dirname(path)] : [dirname(path), dir, dirname(dir)]);
    await Promise.all([...dirs].map((each) => this.#directories.sync(each)));
    entry.anchored = true;
  }

  /** True when it was not there. */
  async #makeScrapeDir(dir: string): Promise<boolean> {
    const parent = dirname(dir);
    if (!this.#baseSeen) await this.#ensureBase();
    // Checked once a process: whoever can swap a directory of ours for a link has our rights already.
    if (!this.#batches.has(parent)) {
      await makeDir(parent);
      await this.#directories.sync(this.#base);
      if (this.#batches.size >= rememberedPlaces) this.#batches.clear();
      this.#batches.add(parent);
    }
    try {
      return await makeDir(dir);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
      await makeDir(parent);
      await this.#directories.sync(this.#base);
      return await makeDir(dir);
    }
  }

  async #ensureBase(): Promise<void> {
    if (!this.#baseSeen) makeFolders(this.#base, dirMode);
    this.#baseSeen = true;
  }

  /**
   * `nothing`, when nothing is there of a scrape. A base that is gone for a while says so of every scrape: taken at its word,
   * those that are settled would be started and paid for again.
   */
  async #orGone<T>(nothing: T): Promise<T> {
    try {
      await stat(this.#base);
      this.#baseSeen = true;
    } catch (error) {
      if (this.#baseSeen || errnoOf(error) !== 'ENOENT') throw error;
    }
    return nothing;
  }

  async #archivedOutcome(target: SinkTarget): Promise<OutcomeDocument | null> {
    return readOutcome(join(this.#scrapeDir(target), '.attempts', String(target.attempt), 'outcome.json'));
  }

  /** Left by a process that died in `check`; young ones may be another process's. */
  async #removeOldProbes(): Promise<void> {
    const probes = (await readdir(this.#base)).filter((name) => name.startsWith('.probe-'));
    for (const name of probes) {
      const info = await lstat(join(this.#base, name)).catch(() => null);
      if (info && Date.now() - info.mtimeMs > staleProbeMs)
        await removeStale(this.#base, [name], ['.probe-']);
    }
  }
}

const isSuperseded = (error: unknown): boolean =>
  error instanceof TrawlError && error.code === 'attempt_superseded';

/** Lines and unpacked bytes of a page that another writer, or an earlier try, has published. */
async function measure(path: string): Promise<{ items: number; bytes: number }> {
  const data = await readFile(path);
  const text = path.endsWith('.gz') ? await gunzipBuffer(data) : data;
  let lines = 0;
  for (let at = text.indexOf(10); at >= 0; at = text.indexOf(10, at + 1)) lines += 1;
  return { items: lines, bytes: text.length };
}

async function readOutcome(path: string): Promise<OutcomeDocument | null> {
  const text = await readSmall(path, outcomeBytes);
  if (text === null) return null;
  const value = parseObject(text);
  if (typeof value?.outcome !== 'string' || typeof value.attempt !== 'number') {
    throw new SinkHeldError('other', `${path} is not an outcome document: move it away`);
  }
  // Written by us and published whole; the fields above tell a foreign file from ours.
  return value as unknown as OutcomeDocument;
}
