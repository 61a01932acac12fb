import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import type { Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Config } from '../src/config.js';
import type { Logger } from '../src/logger.js';
import { createLimiter } from '../src/mcp/limiter.js';
import { logCall } from '../src/mcp/log-call.js';
import type { ScrapeServer } from '../src/mcp/port.js';
import { createApifyServer } from '../src/mcp/profiles/apify.js';
import { redisTokens } from '../src/mcp/redis-tokens.js';
import type { Metrics } from '../src/metrics/index.js';
import { AttemptStore } from '../src/queue/attempt-store.js';
import { cancelScrape } from '../src/queue/cancel.js';
import { Holds } from '../src/queue/holds.js';
import { LogLevelOverrides } from '../src/queue/log-overrides.js';
import { Keys } from '../src/queue/names.js';
import { Queues } from '../src/queue/queues.js';
import { withScripts } from '../src/queue/scripts.js';
import { Slots } from '../src/queue/slots.js';
import { createRedis } from '../src/redis/connection.js';
import { shortHash } from '../src/scrape/canonical.js';
import type { Sink } from '../src/sinks/contract.js';
import { tracedPort } from '../src/tracing/traced-port.js';
import { noTracing, type Tracing } from '../src/tracing/tracing.js';
import { version } from '../src/version.js';
import { createAbortWorker } from './abort.js';
import { Brake } from './brake.js';
import type { ServerParts, WorkerContext } from './context.js';
import type { GatedWorker } from './gated-worker.js';
import { Intake } from './intake.js';
import { Liveness } from './liveness.js';
import { LogLevelWatch } from './log-levels.js';
import { createPagesWorker } from './pages.js';
import { createPollWorker } from './poll.js';
import { RecentStarts } from './recent-starts.js';
import { RefusalStreaks } from './refusal-streaks.js';
import { RunWalks } from './run-walks.js';
import { createScrapeWorker } from './scrape.js';
import { createStartWorker } from './start.js';
import { Sweep } from './sweep.js';
import { defaultTiming, type Timing } from './timing.js';
import { Wakeups } from './wakeups.js';

export interface DaemonOptions {
  readonly config: Config;
  /** From `resolveRedis`. */
  readonly redis: Config['redis'];
  readonly sink: Sink;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Absent: no traces. Whoever opened it closes it, after the daemon stopped. */
  readonly tracing?: Tracing;
  /** Take jobs from the intake stream and list as well; `trawl run` does not. */
  readonly intake: boolean;
  /** Shorter spans, in tests. */
  readonly timing?: Partial<Timing>;
  /** Tests hand in servers of their own; absent: the profile of each server. */
  readonly port?: (name: string) => ScrapeServer;
}

/** Time that closing Redis connections and MCP sessions may take after the last job is out of our hands. */
const closingMs = 3_000;

/**
 * One process that runs every role. More of them on more machines share Redis and the work; none keeps anything that the
 * next could not pick up.
 */
export class Daemon {
  readonly ctx: WorkerContext;
  private readonly connections: Redis[] = [];
  private readonly servers = new Map<string, ServerParts>();
  private readonly limiters: { close(): void }[] = [];
  private readonly startWorkers: GatedWorker[] = [];
  private readonly otherWorkers: Worker[] = [];
  private readonly wakeups: Wakeups;
  private readonly sweep: Sweep;
  private readonly intake: Intake | null;
  private readonly levels: LogLevelWatch;
  private readonly stopper = new AbortController();
  private stopped: Promise<void> | null = null;
  private quieted: Promise<void> | null = null;

  constructor(private readonly options: DaemonOptions) {
    const { config, log, metrics, sink } = options;
    // Every call in flight listens to it, and there may be hundreds.
    setMaxListeners(0, this.stopper.signal);
    const owner = `${hostname().slice(0, 32)}-${process.pid}-${randomBytes(3).toString('hex')}`;
    const redis = withScripts(this.connect('worker'));
    const keys = new Keys(config.prefix);
    const names = Object.keys(config.servers);
    const logError = (error: unknown) =>
      log.module('redis').warn({ event: 'redis.error', err: error }, 'Redis error');
    const tracing = options.tracing ?? noTracing;
    const queues = new Queues(redis, keys, names, logError, tracing.bullmq);
    const store = new AttemptStore(redis, keys);
    const timing = { ...defaultTiming, ...options.timing };
    const holds = new Holds(redis, keys, queues, timing);
    const now = Date.now;
    this.ctx = {
      config,
      redis,
      keys,
      queues,
      store,
      holds,
      brake: new Brake(redis, keys, holds, config, log.module('fleet')),
      refusals: new RefusalStreaks(redis, keys),
      recent: new RecentStarts(redis, keys),
      walks: new RunWalks(),
      timing,
      sink,
      metrics,
      tracing,
      log: log.module('scrape'),
      liveness: new Liveness(now),
      owner,
      server: (name) => {
        const server = this.servers.get(name);
        if (server === undefined) throw new Error(`server ${name} is not configured`);
        return server;
      },
      cancel: async (scrape) => {
        await cancelScrape({ redis, keys, queues, store, servers: names }, scrape);
      },
      stopping: this.stopper.signal,
      now,
    };
    for (const name of names) {
      const { limits, url } = config.servers[name] as Config['servers'][string];
      const slots = new Slots(redis, keys, name, limits, owner, logError, timing);
      const plain = options.port?.(name) ?? this.openPort(name);
      const port = tracing.bullmq === undefined ? plain : tracedPort(plain, tracing);
      const account = shortHash(new URL(url).origin);
      this.servers.set(name, { port, slots, account });
    }
    this.wakeups = new Wakeups(this.connect('subscriber'), keys.wakeChannel);
    this.sweep = new Sweep(this.ctx, log.module('fleet'));
    const overrides = new LogLevelOverrides(redis, keys);
    this.levels = new LogLevelWatch(overrides, log, config.log, timing.logLevelsEveryMs, now);
    this.intake = options.intake ? new Intake(this.ctx) : null;
  }

  async start(): Promise<void> {
    const { ctx } = this;
    await this.wakeups.start();
    for (const server of Object.values(ctx.config.servers)) {
      this.startWorkers.push(createStartWorker(ctx, server, this.wakeups));
      this.otherWorkers.push(
        createPollWorker(ctx, server),
        createPagesWorker(ctx, server),
        createAbortWorker(ctx, server),
      );
    }
    this.otherWorkers.push(createScrapeWorker(ctx));
    for (const worker of this.workers) {
      worker
        .run()
        .catch((error) =>
          this.options.log.error({ event: 'worker.ended', err: error }, 'a worker loop ended'),
        );
    }
    this.sweep.start();
    this.intake?.start();
    this.levels.start();
  }

  /**
   * No new starts by this process, and no jobs from the intake; runs under way go on to their end. Resolves when no start
   * is in hand any more. `stop` has to follow.
   */
  quiet(): Promise<void> {
    this.quieted ??= this.closeStarts();
    return this.quieted;
  }

  private async closeStarts(): Promise<void> {
    const starts = this.startWorkers.map((worker) => worker.close());
    this.wakeups.wakeAll();
    await Promise.allSettled([this.intake?.stop(), ...starts]);
  }

  /**
   * Stops in two steps. No new jobs from here on; calls in flight may end for half of `graceMs` and are then cut and
   * handed back. A start under way is never cut: its answer names the run that was paid for. It is bounded by
   * `start.timeout`, and a run it leaves behind is found by its intent.
   */
  stop(graceMs: number): Promise<void> {
    this.stopped ??= this.stopAll(graceMs);
    return this.stopped;
  }

  private async stopAll(graceMs: number): Promise<void> {
    const { ctx } = this;
    const { log } = this.options;
    this.levels.stop();
    log.info({ event: 'daemon.stopping', graceMs }, 'stopping: no new jobs; calls in flight may end');
    const cut = setTimeout(() => this.stopper.abort(), graceMs / 2);
    const chores = Promise.allSettled([this.intake?.stop(), this.sweep.stop()]);
    const starts = Promise.allSettled(this.startWorkers.map((worker) => worker.close()));
    this.wakeups.wakeAll();
    const others = Promise.allSettled(this.otherWorkers.map((worker) => worker.close()));
    const [othersLeft, startsLate] = await Promise.all([
      timedOut(Promise.all([others, chores]), graceMs),
      timedOut(starts, graceMs),
    ]);
    // With Redis away a worker without a job cannot close either; it is not waited for.
    const startsInHand = startsLate && this.startWorkers.some((worker) => worker.busy);
    const startsLeft = startsInHand
      ? await timedOut(starts, Math.max(0, ctx.config.start.timeoutMs - graceMs) + closingMs)
      : startsLate;
    clearTimeout(cut);
    if (othersLeft || startsLeft) {
      log.warn({ event: 'daemon.cut' }, 'some jobs did not end in time; other workers take them up');
    }
    for (const { slots, port } of this.servers.values()) {
      slots.close();
      await timedOut(port.close(), closingMs);
    }
    for (const limiter of this.limiters) limiter.close();
    await timedOut(ctx.queues.close(), closingMs);
    await ctx.sink.close();
    for (const connection of this.connections) connection.disconnect();
    log.info({ event: 'daemon.stopped' }, 'stopped');
  }

  private get workers(): Worker[] {
    return [...this.startWorkers, ...this.otherWorkers];
  }

  private connect(name: string): Redis {
    const { redis, log } = this.options;
    const connection = createRedis(redis, {
      role: 'worker',
      log: log.module('redis'),
      name: `trawl-${name}`,
    });
    this.connections.push(connection);
    return connection;
  }

  private openPort(name: string): ScrapeServer {
    const { config, log, metrics } = this.options;
    const server = config.servers[name] as Config['servers'][string];
    const { callTimeoutMs, connectTimeoutMs, toolsFreshMs } = this.ctx.timing;
    const tokens = redisTokens({
      redis: this.ctx.redis,
      prefix: config.prefix,
      server: name,
      requestsPerSecond: server.limits.requestsPerSecond,
    });
    const limiter = createLimiter(tokens, {
      onSourceError: (error) =>
        log.module('redis').warn({ event: 'limiter.error', err: error, server: name }, 'rate limit unknown'),
    });
    this.limiters.push(limiter);
    return createApifyServer({
      server,
      answerBytes: config.limits.answerBytes,
      tuning: { callTimeoutMs, connectTimeoutMs, toolsFreshMs },
      limiter,
      observe: (call, seen) => {
        metrics.mcpRequest(name, call.operation, call.result, call.seconds, call.rpcCode);
        logCall(log.module('mcp'), name, call, seen);
      },
      log: log.module('mcp'),
      version,
    });
  }
}

/** True when `work` was still going on after `ms`. */
async function timedOut(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(true), ms);
  });
  const result = await Promise.race([
    work.then(
      () => false,
      () => false,
    ),
    late,
  ]);
  clearTimeout(timer);
  return result;
}
