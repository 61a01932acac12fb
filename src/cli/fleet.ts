import { existsSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Config } from '../config.js';
import type { Logger } from '../logger.js';
import { AttemptStore } from '../queue/attempt-store.js';
import type { CancelDeps } from '../queue/cancel.js';
import { Holds } from '../queue/holds.js';
import { Keys } from '../queue/names.js';
import { Queues } from '../queue/queues.js';
import { type ScriptedRedis, withScripts } from '../queue/scripts.js';
import { connectRedis, resolveRedis, toRedisError } from '../redis/connection.js';
import { socketPathFor } from '../redis/private-folder.js';
import { accepts } from '../redis/private-process.js';
import type { Sink } from '../sinks/contract.js';
import { createFileSink } from '../sinks/file.js';
import { noTracing, type Tracing } from '../tracing/tracing.js';
import type { WorkerProcess } from './worker-process.js';

/** What all processes of one Trawl share, for a command that looks at it or changes it and ends. */
export interface Fleet {
  readonly config: Config;
  readonly redis: ScriptedRedis;
  readonly keys: Keys;
  readonly queues: Queues;
  readonly store: AttemptStore;
  readonly holds: Holds;
  readonly sink: Sink;
  readonly tracing: Tracing;
  readonly servers: readonly string[];
  /** Redis is the folder's own, started by Trawl. */
  readonly private: boolean;
}

/**
 * Connects, hands out, and lets go again. A private Redis that does not run is started for as long as this takes.
 * @throws TrawlError `redis_unreachable`, `redis_binary_missing`, and what `use` throws
 */
export async function withFleet<T>(
  config: Config,
  log: Logger,
  use: (fleet: Fleet) => Promise<T>,
): Promise<T> {
  const resolved = await resolveRedis(config, { cwd: process.cwd(), env: process.env, log });
  try {
    const connection = await connectRedis(resolved.target, { role: 'producer', log, name: 'trawl-cli' });
    const redis = withScripts(connection);
    const fleet = openFleet(config, redis, resolved.private);
    try {
      return await use(fleet);
    } catch (error) {
      throw toRedisError(error, resolved.target);
    } finally {
      await fleet.queues.close();
      await fleet.sink.close();
      connection.disconnect();
    }
  } finally {
    await resolved.release();
  }
}

/** What the workers of this process use, for a command that works itself. */
export function fleetOf(worker: WorkerProcess, config: Config): Fleet {
  const { redis, keys, queues, store, holds, sink, tracing } = worker.daemon.ctx;
  const servers = Object.keys(config.servers);
  return { config, redis, keys, queues, store, holds, sink, tracing, servers, private: worker.privateRedis };
}

function openFleet(config: Config, redis: ScriptedRedis, isPrivate: boolean): Fleet {
  const keys = new Keys(config.prefix);
  const servers = Object.keys(config.servers);
  // Each command gets the error of its own call; the connection logs what concerns it.
  const queues = new Queues(redis, keys, servers, () => {});
  return {
    config,
    redis,
    keys,
    queues,
    store: new AttemptStore(redis, keys),
    holds: new Holds(redis, keys, queues),
    sink: createFileSink({ dir: config.results.dir, gzip: config.results.gzip }),
    tracing: noTracing,
    servers,
    private: isPrivate,
  };
}

export function cancelDeps(fleet: Fleet): CancelDeps {
  const { redis, keys, queues, store, servers } = fleet;
  return { redis, keys, queues, store, servers };
}

/** Whether some process works at the moment: one of them is always the elected one. */
export async function hasWorker(fleet: Fleet): Promise<boolean> {
  return (await fleet.redis.exists(fleet.keys.leader)) === 1;
}

/** Whether there is a Redis to ask without starting one. An external one is said to be; asking it will tell. */
export async function redisRuns(config: Config): Promise<boolean> {
  if (config.redis.url !== '' || config.redis.sentinel) return true;
  const dir = join(config.file === null ? process.cwd() : dirname(config.file), '.trawl', 'redis');
  if (!existsSync(dir)) return false;
  return accepts(socketPathFor(realpathSync(dir), tmpdir()));
}
