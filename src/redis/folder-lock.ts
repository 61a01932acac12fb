import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { TrawlError } from '../errors.js';
import { identify, type ProcessIdentity, parseIdentity, stateOf } from './process-identity.js';

/** A lock left on another machine or in another container cannot be looked at; nothing holds one this long. */
const abandonedAfterMs = 120_000;

/**
 * Runs `work` while holding the lock file `path`; one process at a time, also when holders are killed.
 *
 * The file appears with its content by `link()`, so nobody sees a half-written one. A dead holder's lock is broken only
 * by the holder of `<path>.<nonce of that lock>`, which is a lock of this very kind: two processes that find
 * the same dead lock cannot both remove it, and nobody removes a lock that came after it.
 * @throws TrawlError `redis_unreachable` when a living process keeps it for longer than `timeoutMs`
 */
export async function withFolderLock<T>(path: string, timeoutMs: number, work: () => Promise<T>): Promise<T> {
  const nonce = randomBytes(8).toString('hex');
  const deadline = Date.now() + timeoutMs;
  while (!tryLock(path, nonce)) {
    if (Date.now() > deadline) {
      throw new TrawlError('redis_unreachable', `Another process has held ${path} for too long.`, {
        hint: 'Look whether a trawl process hangs in this folder; when none is running, delete that file.',
      });
    }
    await delay(15 + Math.random() * 15);
  }
  try {
    return await work();
  } finally {
    unlock(path, nonce);
  }
}

function tryLock(path: string, nonce: string): boolean {
  const mine = `${path}-${nonce}.tmp`;
  writeFileSync(mine, JSON.stringify({ ...identify(process.pid), nonce }), { mode: 0o600 });
  try {
    linkSync(mine, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(mine, { force: true });
  }
  const holder = readLock(path);
  if (holder === null || !isAbandoned(path, holder)) return false;
  const breaker = `${path}.${holder.nonce}`;
  if (!tryLock(breaker, nonce)) return false;
  // Looked at again under the breaker's lock: it may have been broken, and taken anew, meanwhile.
  if (readLock(path)?.nonce === holder.nonce) rmSync(path, { force: true });
  unlock(breaker, nonce);
  return false;
}

function unlock(path: string, nonce: string): void {
  if (readLock(path)?.nonce === nonce) rmSync(path, { force: true });
}

type Holder = ProcessIdentity & { nonce: string };

/** null when there is none; a file that is no lock of ours counts as one with an unknown, distant holder. */
function readLock(path: string): Holder | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    const value = JSON.parse(text) as { nonce?: unknown };
    const who = parseIdentity(value);
    if (who && typeof value.nonce === 'string' && /^[0-9a-f]{16}$/.test(value.nonce)) {
      return { ...who, nonce: value.nonce };
    }
  } catch {}
  return { pid: 1, started: '', host: '', nonce: 'unreadable' };
}

function isAbandoned(path: string, holder: Holder): boolean {
  const state = stateOf(holder);
  switch (state) {
    case 'alive':
      return false;
    case 'dead':
      return true;
    case 'elsewhere':
      try {
        return Date.now() - statSync(path).mtimeMs > abandonedAfterMs;
      } catch {
        return false;
      }
    default:
      return state satisfies never;
  }
}
