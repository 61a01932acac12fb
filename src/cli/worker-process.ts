import { Daemon } from '../../workers/daemon.js';
import type { Timing } from '../../workers/timing.js';
import type { Config } from '../config.js';
import { fetchCheck, healthSource, redisCheck } from '../http/health.js';
import { httpMounts } from '../http/mounts.js';
import { createHttpServer } from '../http/server.js';
import type { Logger } from '../logger.js';
import { createMetrics } from '../metrics/index.js';
import { assertFit, checkRedis } from '../redis/checks.js';
import { connectRedis, describeRedis, resolveRedis, toRedisError } from '../redis/connection.js';
import type { Sink } from '../sinks/contract.js';
import { createFileSink } from '../sinks/file.js';
import { openTracing } from '../tracing/open.js';
import { version } from '../version.js';

/** Without a fetch for this long a worker is not ready; for twice as long with Redis there, it needs a restart. */
const maxFetchAgeMs = 60_000;

export interface WorkerProcess {
  readonly daemon: Daemon;
  readonly sink: Sink;
  /** Where Redis is, for people. */
  readonly redisLabel: string;
  readonly redisTarget: Config['redis'];
  readonly privateRedis: boolean;
  start(): Promise<void>;
  /** Serves /metrics, /healthz, /readyz, the page, the API, the queue board. @throws TrawlError `http_listen_failed` */
  serve(): Promise<string>;
  /** What ioredis threw, as ours. */
  asRedisError(error: unknown): unknown;
  /** Stops the daemon within `graceMs` (a start under way may take longer) and lets go of everything. */
  stop(graceMs: number): Promise<void>;
  /** Lets go of Redis without waiting for anything: as safe as a crash. */
  abandon(): Promise<void>;
}

/**
 * Everything a process that works needs, checked before it begins: Redis reachable and fit to hold scrapes, results
 * writable.
 * @throws TrawlError `redis_unreachable`, `redis_unfit`, `redis_binary_missing`; SinkHeldError
 */
export async function prepareWorkerProcess(options: {
  readonly config: Config;
  readonly log: Logger;
  /** Take jobs from the intake stream and list. */
  readonly intake: boolean;
  /** Shorter spans than the product's, as the incident rehearsal has them. */
  readonly timing?: Partial<Timing>;
}): Promise<WorkerProcess> {
  const { config, log, intake, timing = {} } = options;
  const resolved = await resolveRedis(config, {
    cwd: process.cwd(),
    env: process.env,
    log: log.module('redis'),
  });
  try {
    await checkFit(resolved.target, resolved.private, log.module('redis'));
    const sink = createFileSink({
      dir: config.results.dir,
      gzip: config.results.gzip,
      log: log.module('sink'),
    });
    await sink.check();
    for (const warning of config.warnings) log.warn({ event: 'config.warning' }, warning);
    const metrics = createMetrics({ version, servers: toolsOf(config), process: true });
    const tracing = await openTracing(config, log);
    const daemon = new Daemon({
      config,
      redis: resolved.target,
      sink,
      metrics,
      log,
      intake,
      tracing,
      timing,
    });
    metrics.onCollect(() => {
      for (const [queue, at] of daemon.ctx.liveness.lastFetch) metrics.workerFetched(queue, at);
    });
    let http: { close(): Promise<void> } | null = null;
    return {
      daemon,
      sink,
      redisLabel: describeRedis(resolved.target),
      redisTarget: resolved.target,
      privateRedis: resolved.private,
      start: () => daemon.start(),
      async serve() {
        const { host, port, trustedProxies } = config.http;
        const httpLog = log.module('http');
        const server = await createHttpServer({
          host,
          port,
          trustedProxies,
          metrics,
          health: healthOf(daemon),
          log: httpLog,
          mounts: mountsOf(config, daemon, sink, httpLog),
        });
        http = server;
        return server.url;
      },
      asRedisError: (error) => toRedisError(error, resolved.target),
      async stop(graceMs) {
        await daemon.stop(graceMs);
        await tracing.close();
        await http?.close();
        await resolved.release();
      },
      abandon: () => resolved.release(),
    };
  } catch (error) {
    await resolved.release();
    throw error;
  }
}

async function checkFit(target: Config['redis'], isPrivate: boolean, log: Logger): Promise<void> {
  const client = await connectRedis(target, { role: 'producer', log, name: 'trawl-check' });
  try {
    // A private Redis runs with our own settings.
    if (isPrivate) return;
    for (const { name, message, hint } of assertFit(await checkRedis(client, describeRedis(target)))) {
      log.warn({ event: 'redis.warning', check: name, hint }, `Redis, ${name}: ${message}`);
    }
  } catch (error) {
    throw toRedisError(error, target);
  } finally {
    client.disconnect();
  }
}

/** The page, the API and the queue board, on what the workers of this process use. */
function mountsOf(config: Config, daemon: Daemon, sink: Sink, log: Logger) {
  const { redis, keys, queues, store, holds, now } = daemon.ctx;
  const servers = Object.keys(config.servers);
  return httpMounts({ config, redis, keys, queues, store, holds, sink, servers, log, now });
}

function toolsOf(config: Config): Record<string, { tools: string[] }> {
  const servers = Object.values(config.servers);
  return Object.fromEntries(servers.map(({ name, tools }) => [name, { tools: Object.keys(tools) }]));
}

/**
 * Ready: Redis answers and every queue was asked for work lately. Live: as long as the process runs and either fetches or
 * cannot, because Redis is away; a worker that fetches nothing from a Redis that answers helps nobody.
 */
function healthOf({ ctx }: Daemon) {
  const ping = redisCheck(() => ctx.redis.ping());
  const fetched = (maxAgeMs: number) =>
    fetchCheck({ lastFetch: () => ctx.liveness.lastFetch, now: ctx.now, maxAgeMs });
  const fetches = fetched(2 * maxFetchAgeMs);
  return {
    live: healthSource({
      process: async () => {
        if (ctx.redis.status !== 'ready') return { ok: true, message: 'runs; waiting for Redis' };
        return fetches();
      },
    }),
    ready: healthSource({ redis: ping, fetch: fetched(maxFetchAgeMs) }),
  };
}
