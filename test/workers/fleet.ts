import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue, QueueEvents } from 'bullmq';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { type Config, loadConfig } from '../../src/config.js';
import { createLogger } from '../../src/logger.js';
import { createMetrics } from '../../src/metrics/index.js';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import { createFileSink } from '../../src/sinks/file.js';
import { Daemon, type DaemonOptions } from '../../workers/daemon.js';
import { RedisProcess } from '../redis/redis-process.js';

/** A real Redis with its configuration, a results folder and a producer's connections. */
export interface FleetParts {
  readonly redis: RedisProcess;
  readonly dir: string;
  readonly config: Config;
  readonly queue: Queue;
  readonly events: QueueEvents;
  readonly client: Redis;
}

/** Daemons on demand on a real Redis, in front of whatever servers the configuration names. */
export class Fleet {
  readonly daemons: Daemon[] = [];
  readonly logged: Record<string, unknown>[] = [];
  readonly redis: RedisProcess;
  readonly dir: string;
  readonly config: Config;
  readonly queue: Queue;
  readonly events: QueueEvents;
  readonly client: Redis;

  protected constructor(parts: FleetParts) {
    this.redis = parts.redis;
    this.dir = parts.dir;
    this.config = parts.config;
    this.queue = parts.queue;
    this.events = parts.events;
    this.client = parts.client;
  }

  /** `servers` as in trawl.yaml; `settings` is laid over the rest of the test configuration. */
  static async inFrontOf(
    servers: Record<string, unknown>,
    settings: Record<string, unknown> = {},
  ): Promise<Fleet> {
    return new Fleet(await Fleet.parts(servers, settings));
  }

  protected static async parts(
    servers: Record<string, unknown>,
    settings: Record<string, unknown>,
  ): Promise<FleetParts> {
    const [redis, dir] = await Promise.all([
      RedisProcess.start('--hz', '100'),
      mkdtemp(join(tmpdir(), 'trawl-fleet-')),
    ]);
    const config = await writeConfig(dir, redis.url, servers, settings);
    const client = new Redis(redis.url, { maxRetriesPerRequest: null });
    const queue = new Queue('scrape', { connection: client, prefix: config.prefix });
    const events = new QueueEvents('scrape', { connection: { url: redis.url }, prefix: config.prefix });
    events.setMaxListeners(0);
    await events.waitUntilReady();
    return { redis, dir, config, queue, events, client };
  }

  async daemon(options: Partial<DaemonOptions> = {}): Promise<Daemon> {
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
      ...options,
    });
    await daemon.start();
    this.daemons.push(daemon);
    return daemon;
  }

  /** Adds a job as another program would, with plain BullMQ. */
  async add(id: string, job: Record<string, unknown>, options: Record<string, unknown> = {}): Promise<void> {
    await this.queue.add('scrape', job, { jobId: `default.${id}`, ...options });
  }

  /** The outcome document, also of a failed scrape. */
  async outcome(id: string, ms = 60_000): Promise<OutcomeDocument> {
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

  async close(): Promise<void> {
    await Promise.all(this.daemons.map((daemon) => daemon.stop(2_000)));
    await this.events.close();
    await this.queue.close();
    this.client.disconnect();
    await this.redis.stop();
    await rm(this.dir, { recursive: true, force: true });
  }
}

async function writeConfig(
  dir: string,
  redisUrl: string,
  servers: Record<string, unknown>,
  settings: Record<string, unknown>,
): Promise<Config> {
  const file = join(dir, 'trawl.yaml');
  const document = {
    redis: { url: redisUrl },
    poll: { interval: '1s' },
    http: { port: 0 },
    retry: { backoff: '1s' },
    servers,
    ...settings,
  };
  await writeFile(file, stringify(document));
  return loadConfig({ file, env: {}, cwd: dir });
}
