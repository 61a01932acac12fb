import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError } from '../errors.js';
import { makeFolders } from '../folders.js';

/** The kernel's limit is 107 (103 on macOS); Redis and tools add nothing to it, but keep a margin. */
const maxSocketPathBytes = 100;

/** Makes the data folder (mode 0700) and returns its real path, by which all its users agree on one socket. */
export function prepareDataFolder(dir: string): string {
  makeFolders(dir, 0o700);
  const real = realpathSync(dir);
  const stat = lstatSync(real);
  if (!isOurs(stat.uid)) {
    throw new TrawlError(
      'redis_unfit',
      `The folder for the private Redis, ${real}, belongs to another user.`,
      {
        hint: 'Run trawl as its owner, or in a folder of your own, or set redis.url.',
      },
    );
  }
  if ((stat.mode & 0o077) !== 0) chmodSync(real, 0o700);
  return real;
}

/**
 * Where the socket of the server with data in `dir` (a real path) goes: beside the data, or, when that path would
 * be too long, in a 0700 folder under the temporary directory whose name follows from `dir`.
 * @throws TrawlError `redis_unfit` when that folder is a symlink, another user's, or open to others: the temporary
 *   directory is everybody's, and whoever owns the folder could answer in the server's place
 */
export function socketPathFor(dir: string, tmp: string): string {
  const beside = join(dir, 'redis.sock');
  if (Buffer.byteLength(beside) <= maxSocketPathBytes) return beside;
  const name = createHash('sha256').update(dir).digest('hex').slice(0, 16);
  const folder = join(tmp, `trawl-${process.getuid?.() ?? 0}-${name}`);
  const path = join(folder, 'redis.sock');
  if (Buffer.byteLength(path) > maxSocketPathBytes) {
    throw new TrawlError('redis_unfit', `No place for the private Redis's socket: ${path} is too long.`, {
      hint: 'Set TMPDIR to a short path, or run trawl in a folder with a shorter one.',
    });
  }
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const stat = lstatSync(folder);
  const fault = !stat.isDirectory()
    ? 'is not a folder'
    : !isOurs(stat.uid)
      ? 'belongs to another user'
      : (stat.mode & 0o077) !== 0
        ? 'is open to other users'
        : null;
  if (fault !== null) {
    throw new TrawlError('redis_unfit', `The socket folder ${folder} ${fault}.`, {
      hint: 'Somebody else may have put it there. Remove it, or set TMPDIR to a folder of your own.',
    });
  }
  return path;
}

function isOurs(uid: number): boolean {
  return process.getuid === undefined || uid === process.getuid();
}
