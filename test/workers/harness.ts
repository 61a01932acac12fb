import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue, QueueEvents } from 'bullmq';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { loadConfig } from '../../src/config.js';
import { createLogger } from '../../src/logger.js';
import { createMetrics } from '../../src/metrics/index.js';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import { createFileSink } from '../../src/sinks/file.js';
import { Daemon } from '../../workers/daemon.js';
import { RedisProcess } from '../redis/redis-process.js';
import { type Sim, type SimOptions, startSim } from '../sim/index.js';

export const yellowPages = 'trudax/yellow-pages-us-scraper';
export const maps = 'compass/crawler-google-places';

export interface BenchOptions {
  readonly sim?: SimOptions;
  /** Laid over the test configuration, as in trawl.yaml. */
  readonly config?: Record<string, unknown>;
  readonly server?: Record<string, unknown>;
  readonly limits?: Record<string, unknown>;
}

/** A real Redis, the simulator over HTTP, a results folder, and daemons on demand. */
export class Bench {
  readonly daemons: Daemon[] = [];
  readonly logged: Record<string, unknown>[] = [];
  private readonly closers: (() => unknown)[] = [];

  private constructor(
    readonly redis: RedisProcess,
    readonly sim: Sim,
    readonly dir: string,
    readonly config: ReturnType<typeof loadConfig>,
    readonly queue: Queue,
    readonly events: QueueEvents,
    readonly client: Redis,
  ) {}

  static async open(options: BenchOptions = {}): Promise<Bench> {
    const [redis, sim, dir] = await Promise.all([
      RedisProcess.start('--hz', '100'),
      startSim(options.sim ?? { conditions: { mix: 'fixed' } }),
      mkdtemp(join(tmpdir(), 'trawl-bench-')),
    ]);
    const config = await writeConfig(dir, redis.url, sim.url, options);
    const client = new Redis(redis.url, { maxRetriesPerRequest: null });
    const queue = new Queue('scrape', { connection: client, prefix: config.prefix });
    const events = new QueueEvents('scrape', { connection: { url: redis.url }, prefix: config.prefix });
    events.setMaxListeners(0);
    await events.waitUntilReady();
    return new Bench(redis, sim, dir, config, queue, events, client);
  }

  async daemon(): Promise<Daemon> {
    const { config } = this;
    const log = createLogger({
      level: process.env.TRAWL_TEST_LOG ?? 'debug',
      destination: {
        write: (line) => {
          if (process.env.TRAWL_TEST_LOG) process.stderr.write(line);
          this.logged.push(JSON.parse(line) as Record<string, unknown>);
        },
      },
    });
    for (const server of Object.values(config.servers)) log.registerSecret(server.token);
    const tools = (name: string) => Object.keys(config.servers[name]?.tools ?? {});
    const daemon = new Daemon({
      config,
      redis: { url: this.redis.url, tls: false },
      sink: createFileSink({ dir: config.results.dir, gzip: config.results.gzip, log }),
      metrics: createMetrics({
        version: 'test',
        servers: Object.fromEntries(
          Object.keys(config.servers).map((name) => [name, { tools: tools(name) }]),
        ),
      }),
      log,
      intake: true,
    });
    await daemon.start();
    this.daemons.push(daemon);
    return daemon;
  }

  /** Adds a job as another program would, with plain BullMQ. */
  async add(id: string, job: Record<string, unknown>, options: Record<string, unknown> = {}): Promise<void> {
    await this.queue.add('scrape', { tool: yellowPages, ...job }, { jobId: `default.${id}`, ...options });
  }

  /** The outcome document, also of a failed scrape. */
  async outcome(id: string, ms = 20_000): Promise<OutcomeDocument> {
    const job = await this.queue.getJob(id.includes('.') ? id : `default.${id}`);
    if (job === undefined) throw new Error(`no job ${id}`);
    try {
      return (await job.waitUntilFinished(this.events, ms)) as OutcomeDocument;
    } catch (error) {
      const ended = await this.queue.getJob(job.id as string);
      if (ended?.failedReason === undefined || ended.failedReason === '') throw error;
      return ended.progress as OutcomeDocument;
    }
  }

  resultsOf(id: string, batch = 'default'): string {
    return join(this.config.results.dir, `batch=${batch}`, `scrape=${id}`);
  }

  onClose(close: () => unknown): void {
    this.closers.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.closers) await close();
    await Promise.all(this.daemons.map((daemon) => daemon.stop(2_000)));
    await this.events.close();
    await this.queue.close();
    this.client.disconnect();
    await this.sim.close();
    await this.redis.stop();
    await rm(this.dir, { recursive: true, force: true });
  }
}

export async function writeConfig(
  dir: string,
  redisUrl: string,
  simUrl: string,
  options: BenchOptions,
): Promise<ReturnType<typeof loadConfig>> {
  const file = join(dir, 'trawl.yaml');
  const { writeFile } = await import('node:fs/promises');
  const document = {
    redis: { url: redisUrl },
    poll: { interval: '1s' },
    http: { port: 0 },
    retry: { backoff: '1s' },
    servers: {
      apify: {
        url: simUrl,
        token: 'test-token-canary',
        tools: [yellowPages, maps],
        limits: { runs: 20, requestsPerSecond: 1000, ...options.limits },
        ...options.server,
      },
    },
    ...options.config,
  };
  await writeFile(file, stringify(document));
  return loadConfig({ file, env: {}, cwd: dir });
}
