/**
 * Which attempt may write into a scrape's directory, with nothing but the file system between processes.
 *
 *   scrape=<id>/.attempt-<n>/attempt.json   attempt n began here: its digest and its page format
 *   scrape=<id>/.attempt-<n>/open/          its unpublished files; attempt n may publish while this exists
 *   scrape=<id>/.attempt-<n>/moving/        the same directory once a later attempt closed it: what it wrote goes here …
 *   scrape=<id>/.attempts/<n>/              … and this is the same directory when everything is in it
 *
 * A process may be frozen at any instruction and wake minutes later, so no decision is ever acted on by name alone:
 * each step is one system call that fails when the step is out of date.
 * - Publishing links a file out of `open/`. Closing renames `open/`, then removes what was in it: a late link has no source.
 * - `.attempt-<n>` appears complete, by one rename, and is never empty: a late beginner's rename fails (ENOTEMPTY). Earlier
 *   numbers that never began are made without `open/` first, so they can never begin either.
 * - Leftovers are moved into `moving/`, which is renamed when all are in: a late mover, who would otherwise carry off
 *   pages of the new attempt under the old names, has no place to move them to.
 * Attempts are retired in rising order and the new one opens last, so a crash in between is finished by whoever comes next.
 * On NFS a mover that was frozen may still know `moving/` by its handle (as long as its client's attribute cache lasts); the
 * look just before each move makes that window the length of two calls.
 */
import { mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { TrawlError } from '../errors.js';
import { SinkHeldError, type SinkTarget } from './contract.js';
import {
  type DirectorySync,
  dirMode,
  kindOf,
  makeDir,
  randomName,
  readSmall,
  removeStale,
  removeTree,
  writeDurably,
} from './durable.js';
import { errnoOf, notADirectory } from './held.js';
import { pagePattern } from './names.js';

export interface OpenAttempt {
  /** Where unpublished files of this attempt lie. */
  readonly open: string;
  readonly digest: string;
  /** The format its first page was promised in; a changed configuration applies from the next attempt on. */
  readonly gzip: boolean;
}

export interface AttemptFile {
  readonly attempt: number;
  /** null: the attempt never wrote, its number was passed over. */
  readonly digest: string | null;
  readonly gzip: boolean;
}

const attemptFileBytes = 4096;
const maxAttempts = 10_000;
const preparing = '.new-';
export const unpublished = '.tmp-';

const attemptDir = (scrapeDir: string, attempt: number): string => join(scrapeDir, `.attempt-${attempt}`);

/**
 * Opens this attempt in an existing scrape directory, or finds it open; `moved` counts the leftovers that went to the
 * archive. What was moved is durable, the new attempt itself only after the caller syncs the directory: until then a power
 * failure leaves nothing but a begin to be repeated. `fresh`: the caller has just made the scrape directory. Throws `attempt_superseded`, `job_conflict`.
 */
export async function openAttempt(
  scrapeDir: string,
  target: SinkTarget,
  gzip: boolean,
  directories: DirectorySync,
  fresh: boolean,
): Promise<{ attempt: OpenAttempt; made: boolean; moved: number }> {
  if (!Number.isSafeInteger(target.attempt) || target.attempt < 1 || target.attempt > maxAttempts) {
    throw new TrawlError('job_invalid', `There is no attempt ${target.attempt}`);
  }
  let moved = 0;
  let made = false;
  if (fresh || (await kindOf(attemptDir(scrapeDir, target.attempt))) === 'none') {
    for (let earlier = 1; earlier < target.attempt; earlier++)
      moved += await retire(scrapeDir, earlier, directories);
    made = await create(scrapeDir, { attempt: target.attempt, digest: target.digest, gzip }, true);
  }
  const attempt = made
    ? { open: join(attemptDir(scrapeDir, target.attempt), 'open'), digest: target.digest, gzip }
    : await currentAttempt(scrapeDir, target);
  if (!attempt) throw superseded(target);
  return { attempt, made, moved };
}

/** This attempt when it is open, null when it never began or is closed. Throws `job_conflict` for another digest. */
async function currentAttempt(scrapeDir: string, target: SinkTarget): Promise<OpenAttempt | null> {
  const own = attemptDir(scrapeDir, target.attempt);
  const open = join(own, 'open');
  const kinds = await Promise.all([kindOf(own), kindOf(open)]);
  if (kinds.includes('other')) throw notADirectory(kinds[0] === 'other' ? own : open);
  if (kinds.includes('none')) return null;
  const file = await readAttempt(scrapeDir, target.attempt);
  if (!file) return null;
  if (file.digest !== target.digest) {
    throw new TrawlError(
      'job_conflict',
      `Attempt ${target.attempt} of ${target.batch}/${target.id} began with another input`,
      {
        hint: 'Use another id or batch for a different input.',
      },
    );
  }
  return { open, digest: target.digest, gzip: file.gzip };
}

export async function readAttempt(scrapeDir: string, attempt: number): Promise<AttemptFile | null> {
  const path = join(attemptDir(scrapeDir, attempt), 'attempt.json');
  const text = await readSmall(path, attemptFileBytes);
  if (text === null) return null;
  const value = parseObject(text);
  if (typeof value?.attempt !== 'number')
    throw new SinkHeldError('other', `${path} cannot be read: move it away`);
  return {
    attempt: value.attempt,
    digest: typeof value.digest === 'string' ? value.digest : null,
    gzip: value.gzip === true,
  };
}

/** The highest attempt known in a scrape directory, 0 when there is none. */
export async function highestAttempt(scrapeDir: string): Promise<number> {
  let highest = 0;
  for (const name of await list(scrapeDir)) {
    const number = /^\.attempt-(\d{1,6})$/.exec(name)?.[1];
    if (number) highest = Math.max(highest, Number(number));
  }
  return highest;
}

/** Removes unpublished files that a crash left; a living writer of the same attempt notices and writes again. */
export async function sweepOpen(open: string): Promise<void> {
  await removeStale(open, await list(open), [unpublished]);
}

/** `sweepOpen`, and attempts that a crash left half made. */
export async function sweep(scrapeDir: string, open: string): Promise<void> {
  await Promise.all([
    sweepOpen(open),
    list(scrapeDir).then((names) => removeStale(scrapeDir, names, [preparing])),
  ]);
}

export function superseded(target: SinkTarget): TrawlError {
  return new TrawlError(
    'attempt_superseded',
    `Attempt ${target.attempt} of ${target.batch}/${target.id} may not write any more: a later one began`,
  );
}

/** Closes an earlier attempt and moves what it wrote to `.attempts/<n>/`. Returns how many entries were moved. */
async function retire(scrapeDir: string, attempt: number, directories: DirectorySync): Promise<number> {
  const dir = attemptDir(scrapeDir, attempt);
  if ((await kindOf(dir)) === 'none') await create(scrapeDir, { attempt, digest: null, gzip: false }, false);
  const moving = join(dir, 'moving');
  await renameIfThere(join(dir, 'open'), moving);
  if ((await kindOf(moving)) === 'none') return 0;
  // A link that is under way in the kernel has resolved its source already; without a source inode it fails too.
  await removeStale(moving, await list(moving), [unpublished]);
  let moved = 0;
  for (const name of leftovers(await list(scrapeDir))) {
    if ((await kindOf(moving)) === 'none') break;
    if (await renameIfThere(join(scrapeDir, name), join(moving, name))) moved += 1;
  }
  const archive = join(scrapeDir, '.attempts');
  await makeDir(archive);
  await syncIfThere(moving, directories);
  await renameIfThere(moving, join(archive, String(attempt)));
  await Promise.all([directories.sync(dir), directories.sync(archive), directories.sync(scrapeDir)]);
  return moved;
}

/** The outcome first: while pages are on the way the scrape must not look settled. */
function leftovers(names: readonly string[]): string[] {
  const ours = names.filter((name) => name === 'records' || pagePattern.test(name));
  return [...names.filter((name) => name === 'outcome.json'), ...ours.sort()];
}

/** Makes `.attempt-<n>` complete or not at all; false when somebody else's is there already, which stays. */
async function create(scrapeDir: string, file: AttemptFile, open: boolean): Promise<boolean> {
  for (let tries = 0; ; tries++) {
    const draft = join(scrapeDir, randomName(preparing));
    try {
      await mkdir(draft, { mode: dirMode });
      await writeDurably(join(draft, 'attempt.json'), Buffer.from(`${JSON.stringify(file)}\n`));
      if (open) await mkdir(join(draft, 'open'), { mode: dirMode });
      await rename(draft, attemptDir(scrapeDir, file.attempt));
      return true;
    } catch (error) {
      await removeTree(draft);
      const code = errnoOf(error);
      if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
      // Another process swept our draft away as stale; the scrape directory itself missing ends here as well.
      if (code !== 'ENOENT' || tries === 3) throw error;
    }
  }
}

/** False when there was nothing to rename or nowhere to rename it to: another process did this step. */
async function renameIfThere(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}

async function syncIfThere(dir: string, directories: DirectorySync): Promise<void> {
  try {
    await directories.sync(dir);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}

async function list(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  }
}

export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}
