import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { TrawlError } from '../errors.js';
import { findRedisBinary } from './find-binary.js';
import { withFolderLock } from './folder-lock.js';
import type { RedisLog } from './log.js';
import { prepareDataFolder, socketPathFor } from './private-folder.js';
import { accepts, type PrivateProcess, startServer, waitForExit } from './private-process.js';

/** Name of the connections that keep the server: one a user. */
const leaseName = 'trawl-lease';
const lockTimeoutMs = 60_000;
/** A large append-only file takes a while to load. */
const loadTimeoutMs = 300_000;
const maxRevivals = 5;

export interface PrivateRedis {
  /** Path of the unix socket. */
  readonly url: string;
  /** Leaves; the last to leave stops the server, its data stays. May be called again. */
  release(): Promise<void>;
}

export interface PrivateRedisOptions {
  /** Absolute; holds the append-only file, the log and (when short enough) the socket. */
  readonly dir: string;
  /** The PATH variable, where redis-server or valkey-server is looked for. */
  readonly path: string | undefined;
  readonly log: RedisLog;
  /** For sockets whose path would be too long otherwise. */
  readonly tmp?: string;
}

/**
 * Joins the private Redis of a folder, starting it when it does not run.
 *
 * A user is counted by a named connection to the server that lasts as long as the user: the kernel closes it when
 * the user is killed, in whatever way, and no pid or lease file can be left behind. Starting, joining and
 * leaving happen under one lock, so that the last to leave and a newcomer cannot cross. A server without users,
 * left by a crash, is found by its socket and used on.
 *
 * When the server ends while it is in use, that is logged, and the first user to notice starts it again from its
 * append-only file; clients reconnect by themselves.
 * @throws TrawlError `redis_binary_missing` before anything else is done, `redis_unfit` for folders that are not safe,
 *   `redis_unreachable` when it does not start
 */
export async function acquirePrivateRedis(options: PrivateRedisOptions): Promise<PrivateRedis> {
  const binary = findRedisBinary(options.path);
  const dir = prepareDataFolder(options.dir);
  const user = new PrivateRedisUser(
    { dir, binary, socket: socketPathFor(dir, options.tmp ?? tmpdir()) },
    options.log,
  );
  await user.join();
  return { url: user.server.socket, release: () => user.leave() };
}

/** `joined` is the only state in which the end of the lease connection means something. */
class PrivateRedisUser {
  private lease: Redis | null = null;
  private state: 'joining' | 'joined' | 'leaving' | 'left' = 'joining';
  private revivals = 0;
  private left: Promise<void> | null = null;

  constructor(
    readonly server: PrivateProcess,
    private readonly log: RedisLog,
  ) {}

  async join(): Promise<void> {
    await this.locked(async () => {
      // Left while waiting for the lock to start a lost server again.
      if (this.state !== 'joining') return;
      const started = !(await accepts(this.server.socket));
      if (started) await startServer(this.server);
      this.lease = await openLease(this.server.socket);
      this.state = 'joined';
      this.lease.once('end', () => void this.onLost());
      const verb = started ? 'Started' : 'Joined';
      this.log.debug({ socket: this.server.socket, binary: this.server.binary }, `${verb} the private Redis`);
    });
  }

  leave(): Promise<void> {
    this.left ??= this.doLeave();
    return this.left;
  }

  private async doLeave(): Promise<void> {
    this.state = 'leaving';
    try {
      await this.locked(async () => {
        const lease = this.lease;
        if (lease === null || lease.status === 'end') return;
        // Asked twice: the end of a user killed just now may be waiting behind the first question.
        if ((await countLeases(lease)) > 1 && (await countLeases(lease)) > 1) {
          // Before the lock goes: the next to leave must not count us, and our connection may take a while to close.
          await lease.client('SETNAME', 'trawl-left');
          return;
        }
        await shutdown(lease);
        if (!(await waitForExit(this.server.dir))) {
          this.log.warn({ dir: this.server.dir }, 'The private Redis takes long to stop; its data is kept');
        }
      });
    } catch (error) {
      // Leaving must not fail what was done before: a server that stays is used by the next.
      this.log.warn(
        { reason: String(error) },
        'The private Redis was left running; the next command uses it on',
      );
    } finally {
      this.state = 'left';
      this.lease?.disconnect();
    }
  }

  private async onLost(): Promise<void> {
    if (this.state !== 'joined') return;
    this.state = 'joining';
    this.log.error({ dir: this.server.dir }, 'The private Redis ended while in use; starting it again');
    try {
      this.revivals += 1;
      if (this.revivals > maxRevivals) throw new Error(`it has ended ${this.revivals} times`);
      await this.join();
      this.log.warn(
        { dir: this.server.dir },
        'The private Redis runs again, with the data of its append-only file',
      );
    } catch (error) {
      this.log.error(
        { dir: this.server.dir, reason: String(error) },
        `The private Redis cannot be started again; see ${join(this.server.dir, 'redis.log')}, then run again to resume`,
      );
    }
  }

  private locked<T>(work: () => Promise<T>): Promise<T> {
    return withFolderLock(join(this.server.dir, 'lock'), lockTimeoutMs, work);
  }
}

async function openLease(socket: string): Promise<Redis> {
  const lease = new Redis({
    path: socket,
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
  });
  // Its end is what counts, and is reported by 'end'.
  lease.on('error', () => {});
  try {
    await lease.connect();
    await lease.client('SETNAME', leaseName);
    await waitUntilLoaded(lease);
    return lease;
  } catch (cause) {
    lease.disconnect();
    if (cause instanceof TrawlError) throw cause;
    throw new TrawlError('redis_unreachable', `The private Redis does not answer on ${socket}.`, { cause });
  }
}

async function waitUntilLoaded(lease: Redis): Promise<void> {
  const deadline = Date.now() + loadTimeoutMs;
  for (;;) {
    try {
      await lease.ping();
      return;
    } catch (error) {
      const loading = error instanceof Error && error.message.startsWith('LOADING');
      if (!loading || Date.now() > deadline) throw error;
    }
    await delay(50);
  }
}

async function countLeases(lease: Redis): Promise<number> {
  const list = String(await lease.client('LIST'));
  return list.split('\n').filter((line) => ` ${line} `.includes(` name=${leaseName} `)).length;
}

/** Redis answers SHUTDOWN by closing the connection, or with an error when it stays. */
async function shutdown(lease: Redis): Promise<void> {
  try {
    await lease.call('SHUTDOWN');
  } catch (error) {
    if (error instanceof Error && /^(ERR|NOPERM|MISCONF)/.test(error.message)) throw error;
  }
}
