import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TrawlError } from '../errors.js';
import { cleanText } from '../scrape/clean-text.js';
import { identify, type ProcessIdentity, parseIdentity, stateOf } from './process-identity.js';

const maxLogBytes = 1_048_576;
/** Until its socket answers at all; loading the data comes after that. */
const bindTimeoutMs = 15_000;
const exitTimeoutMs = 15_000;

/**
 * The process of a private Redis: its arguments, its life and its end. All of it runs under the folder's lock. Which
 * process writes to the folder is kept in `server.json`, since two servers on one append-only file would ruin it; a
 * socket alone does not tell (cleaners of temporary directories delete it under a living server).
 */
export interface PrivateProcess {
  /** Real path of the data folder. */
  readonly dir: string;
  readonly socket: string;
  readonly binary: string;
}

/** Starts the server and returns once its socket accepts connections. */
export async function startServer(server: PrivateProcess): Promise<void> {
  const known = readServer(server.dir);
  // Its starter was killed between starting it and writing down who it is: it appears now, or never did.
  if (known === 'starting' && (await appears(server.socket, 2_000))) return;
  if (known !== 'starting' && known !== null) await retire(server, known);
  writeFileSync(identityFile(server.dir), JSON.stringify('starting'), { mode: 0o600 });
  const logFile = join(server.dir, 'redis.log');
  const log = openSync(logFile, sizeOf(logFile) > maxLogBytes ? 'w' : 'a', 0o600);
  let child: ChildProcess;
  try {
    child = spawn(server.binary, serverArguments(server), {
      cwd: server.dir,
      // A process group of its own: Ctrl-C reaches the commands, not the server that they drain into.
      detached: true,
      stdio: ['ignore', log, log],
      // Nothing of our environment: it holds the tokens of the MCP servers.
      env: { LC_ALL: 'C' },
    });
  } finally {
    closeSync(log);
  }
  let end: string | null = null;
  child.once('error', (error) => {
    end = error.message;
  });
  child.once('exit', (code, signal) => {
    end ??= `it ended with ${signal ?? `code ${code}`}`;
  });
  if (child.pid !== undefined) {
    writeFileSync(identityFile(server.dir), JSON.stringify(identify(child.pid)), { mode: 0o600 });
  }
  child.unref();
  const deadline = Date.now() + bindTimeoutMs;
  while (!(await accepts(server.socket))) {
    if (end !== null) throw notStarted(`${end}: ${lastLogLine(logFile)}`, logFile);
    if (Date.now() > deadline) {
      child.kill('SIGKILL');
      throw notStarted(`it did not answer within ${bindTimeoutMs / 1000}s`, logFile);
    }
    await delay(5);
  }
}

/** Waits until the server that was asked to stop is gone; false when it stayed. */
export async function waitForExit(dir: string): Promise<boolean> {
  const who = readServer(dir);
  if (who !== null && who !== 'starting' && !(await isGone(who, exitTimeoutMs))) return false;
  rmSync(identityFile(dir), { force: true });
  return true;
}

/** Whether something listens on the socket. */
export function accepts(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(socket);
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });
}

/** Ends a server of this folder that lives and cannot be reached, so that a new one may have the data. */
async function retire(server: PrivateProcess, who: ProcessIdentity): Promise<void> {
  // It may be on its way out; only then be told.
  if (await isGone(who, 1_000)) return;
  try {
    process.kill(who.pid, 'SIGTERM');
  } catch {}
  if (await isGone(who, exitTimeoutMs)) return;
  throw new TrawlError(
    'redis_unreachable',
    `The private Redis (pid ${who.pid}) does not answer and does not end.`,
    {
      hint: `Look at ${join(server.dir, 'redis.log')}; end it with: kill ${who.pid}`,
    },
  );
}

async function appears(socket: string, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs;
  while (!(await accepts(socket))) {
    if (Date.now() > deadline) return false;
    await delay(10);
  }
  return true;
}

async function isGone(who: ProcessIdentity, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs;
  while (stateOf(who) === 'alive') {
    if (Date.now() > deadline) return false;
    await delay(10);
  }
  return true;
}

function serverArguments(server: PrivateProcess): string[] {
  const options = {
    port: '0',
    unixsocket: server.socket,
    unixsocketperm: '700',
    dir: server.dir,
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '',
    'maxmemory-policy': 'noeviction',
    // Delayed jobs come due within 13 ms instead of 100 ms (p99).
    hz: '100',
  };
  return Object.entries(options).flatMap(([key, value]) => [`--${key}`, value]);
}

function identityFile(dir: string): string {
  return join(dir, 'server.json');
}

function readServer(dir: string): ProcessIdentity | 'starting' | null {
  try {
    const value: unknown = JSON.parse(readFileSync(identityFile(dir), 'utf8'));
    return value === 'starting' ? value : parseIdentity(value);
  } catch {
    return null;
  }
}

function notStarted(reason: string, logFile: string): TrawlError {
  return new TrawlError('redis_unreachable', `The private Redis did not start: ${reason}`, {
    hint: `Its log is ${logFile}.`,
  });
}

function lastLogLine(file: string): string {
  try {
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    return cleanText(lines.at(-1) ?? '', 300);
  } catch {
    return 'it left no log';
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
