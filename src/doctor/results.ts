import { randomBytes } from 'node:crypto';
import { link, open, readFile, rm, rmdir, statfs, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Redis } from 'ioredis';
import { makeFolders } from '../folders.js';
import { cleanText } from '../scrape/clean-text.js';
import { type Check, fail, ok, warn } from './check.js';

const lowBytes = 1024 ** 3;
const fullBytes = 64 * 1024 ** 2;

/**
 * Whether the file sink can work in `dir` (design A5): makes a file, makes it durable, publishes it with a hard link as
 * pages are, and takes it all away again, the folders it had to make included.
 */
export async function checkResults(dir: string): Promise<Check[]> {
  const probe = join(dir, `.trawl-probe-${randomBytes(6).toString('hex')}`);
  const published = `${probe}-linked`;
  const checks: Check[] = [];
  let made: string | null = null;
  try {
    made = makeFolders(dir, 0o750);
    await writeDurably(probe);
    checks.push(ok('writable', dir));
  } catch (error) {
    const hint = 'Make the folder writable for this user, or set results.dir to one that is.';
    return [fail('writable', `${dir}: ${reason(error)}`, hint)];
  } finally {
    if (checks.length === 0) await rm(probe, { force: true }).catch(() => {});
  }
  try {
    await link(probe, published);
    checks.push(ok('hard links', 'pages can be published atomically'));
  } catch (error) {
    const hint =
      'Use a file system with hard links (ext4, xfs, APFS, NFS): pages appear whole or not at all by them.';
    checks.push(fail('hard links', `${dir}: ${reason(error)}`, hint));
  }
  checks.push(await checkSpace(dir));
  await rm(published, { force: true });
  await rm(probe, { force: true });
  if (made !== null) await removeEmpty(dir, made);
  return checks;
}

/**
 * Workers on several machines need one shared directory. Each machine's doctor leaves an identity in the directory (the
 * first one makes it) and notes in Redis which it saw, for a week; two that differ are two directories.
 */
export async function checkShared(client: Redis, prefix: string, dir: string, host: string): Promise<Check> {
  const name = 'shared';
  const key = `${prefix}:doctor:results`;
  const id = await directoryIdentity(dir);
  await client
    .multi()
    .hset(key, host, id)
    .expire(key, 7 * 86_400)
    .exec();
  const seen = await client.hgetall(key);
  const others = Object.keys(seen).filter((machine) => machine !== host);
  const elsewhere = others.filter((machine) => seen[machine] !== id).map((machine) => cleanText(machine, 64));
  if (elsewhere.length > 0) {
    const machines = elsewhere.slice(0, 5).join(', ');
    const hint = 'Mount one directory on every machine with workers, or use a prefix of its own for each.';
    return warn(name, `${machines} used another directory with this Redis and prefix in the last week`, hint);
  }
  return others.length > 0
    ? ok(name, `the same directory as on ${others.length} other machine(s)`)
    : ok(name, 'no other machine was seen; run doctor on each that has workers');
}

async function directoryIdentity(dir: string): Promise<string> {
  const file = join(dir, '.trawl-directory');
  makeFolders(dir, 0o750);
  await writeFile(file, randomBytes(12).toString('hex'), { flag: 'wx', mode: 0o640 }).catch((error) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  });
  return (await readFile(file, 'utf8')).slice(0, 64);
}

async function writeDurably(file: string): Promise<void> {
  const handle = await open(file, 'wx', 0o640);
  try {
    await handle.writeFile('probe\n');
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function checkSpace(dir: string): Promise<Check> {
  const { bavail, bsize } = await statfs(dir);
  const free = bavail * bsize;
  const message = `${(free / 1024 ** 3).toFixed(1)} GB`;
  const hint = 'Make room: a full disk holds results until there is some (nothing is lost).';
  if (free < fullBytes) return fail('free space', message, hint);
  return free < lowBytes ? warn('free space', message, hint) : ok('free space', message);
}

/** Removes the folders that were made for the probe, innermost first, as long as they are empty. */
async function removeEmpty(dir: string, first: string): Promise<void> {
  for (let folder = dir; folder.length >= first.length; folder = dirname(folder)) {
    try {
      await rmdir(folder);
    } catch {
      return;
    }
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? cleanText(error.message, 200) : 'unknown reason';
}
