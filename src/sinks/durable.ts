import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errnoOf, noHardLinks, notADirectory } from './held.js';

// Promisified callbacks: a file handle of fs/promises costs about twice the CPU a call, and a scrape makes thirty of them.
const open = promisify(fs.open);
const write = promisify(fs.write);
const fsync = promisify(fs.fsync);
const close = promisify(fs.close);
const link = promisify(fs.link);
const lstat = promisify(fs.lstat);
const mkdir = promisify(fs.mkdir);
const readFile = promisify(fs.readFile);
const unlink = promisify(fs.unlink);
const rm = promisify(fs.rm);
const { O_RDONLY, O_NOFOLLOW, O_DIRECTORY } = fs.constants;

export const fileMode = 0o640;
export const dirMode = 0o750;

export const randomName = (prefix: string): string => prefix + randomBytes(8).toString('hex');

/** `dir`, `other` (a file or a symbolic link, which is never followed) or `none`. */
export async function kindOf(path: string): Promise<'dir' | 'other' | 'none'> {
  try {
    return (await lstat(path)).isDirectory() ? 'dir' : 'other';
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return 'none';
    throw error;
  }
}

/** Makes one directory; true when it was not there. Refuses a symbolic link in its place. The parent is not synced. */
export async function makeDir(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: dirMode });
    return true;
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
    if ((await kindOf(path)) === 'other') throw notADirectory(path);
    return false;
  }
}

/** Writes a new file and makes its content durable; removes what it began when it fails. */
export async function writeDurably(path: string, data: Buffer): Promise<void> {
  const fd = await open(path, 'wx', fileMode);
  try {
    for (let done = 0; done < data.length; ) done += (await write(fd, data, done)).bytesWritten;
    await fsync(fd);
  } catch (error) {
    await removeFile(path);
    throw error;
  } finally {
    await close(fd);
  }
}

export async function removeFile(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}

/** Gives a durable file its final name; false when the name is taken, which leaves the present file as it is. */
export async function linkOnce(from: string, to: string, dir: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'EEXIST') return false;
    // The directory was writable a moment ago, so EPERM is about links (vfat, exFAT), not about permission.
    if (code === 'EPERM' || code === 'ENOTSUP' || code === 'EOPNOTSUPP' || code === 'ENOSYS')
      throw noHardLinks(dir, error);
    throw error;
  }
}

/** A small file's text, null when it is not there. A symbolic link is refused (ELOOP); beyond `maxBytes` it reads as empty. */
export async function readSmall(path: string, maxBytes: number): Promise<string | null> {
  let fd: number;
  try {
    fd = await open(path, O_RDONLY | O_NOFOLLOW);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null;
    throw error;
  }
  try {
    return (await promisify(fs.fstat)(fd)).size > maxBytes ? '' : await readFile(fd, 'utf8');
  } finally {
    await close(fd);
  }
}

/**
 * Directory fsync, shared: callers that arrive while one is running wait together for the next, because the running one
 * may have begun before their entry was made. Thousands of scrapes of one batch sync the same directory.
 */
export class DirectorySync {
  readonly #running = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<void>>();

  sync(dir: string): Promise<void> {
    const next = this.#next.get(dir);
    if (next) return next;
    const running = this.#running.get(dir);
    if (!running) return this.#start(dir);
    const queued = running
      .catch(() => undefined)
      .then(() => {
        this.#next.delete(dir);
        return this.#start(dir);
      });
    this.#next.set(dir, queued);
    return queued;
  }

  #start(dir: string): Promise<void> {
    const run = syncDirectory(dir).finally(() => {
      if (this.#running.get(dir) === run) this.#running.delete(dir);
    });
    this.#running.set(dir, run);
    return run;
  }
}

async function syncDirectory(dir: string): Promise<void> {
  const fd = await open(dir, O_RDONLY | O_DIRECTORY);
  try {
    await fsync(fd);
  } catch (error) {
    // Some network file systems have no fsync on directories and make entries durable by themselves.
    const code = errnoOf(error);
    if (code !== 'EINVAL' && code !== 'ENOTSUP') throw error;
  } finally {
    await close(fd);
  }
}

/** Also while its owner, alive after all, still puts something into it. */
export async function removeTree(path: string): Promise<void> {
  await rm(path, { force: true, recursive: true, maxRetries: 5, retryDelay: 20 });
}

/** Removes the entries of `dir` that begin with one of `prefixes`: what a crash left behind. */
export async function removeStale(
  dir: string,
  names: readonly string[],
  prefixes: readonly string[],
): Promise<void> {
  const stale = names.filter((name) => prefixes.some((prefix) => name.startsWith(prefix)));
  await Promise.all(stale.map((name) => removeTree(join(dir, name))));
}
