import { setTimeout as delay } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { AttemptStore } from '../../src/queue/attempt-store.js';
import { type CancelDeps, type Cancelled, cancelScrape } from '../../src/queue/cancel.js';
import { Keys } from '../../src/queue/names.js';
import { Queues } from '../../src/queue/queues.js';
import { withScripts } from '../../src/queue/scripts.js';
import { hash32, seeded } from '../sim/random.js';
import { jobAt, type Mix, type PlannedJob } from './jobs.js';

/** A scrape whose producer was told that it is accepted, and what was done about it later. */
export interface Submitted {
  readonly job: PlannedJob;
  readonly acceptedAt: number;
  /** When the cancel began, and what it said. */
  cancel: { readonly at: number; readonly result: Cancelled } | null;
  removedAt: number | null;
}

export const prefix = '{chaos}';
export const server = 'apify';

/** Adds scrapes as other programs do, evenly over the run, and cancels or removes some at their moment. */
export class Producer {
  readonly submitted: Submitted[] = [];
  /** Calls that Redis did not answer and that were made again. */
  retries = 0;
  private readonly redis: Redis;
  private readonly queue: Queue;
  private readonly keys = new Keys(prefix);
  private readonly later = new Set<Promise<void>>();

  constructor(
    redisUrl: string,
    private readonly seed: number,
    private readonly mix: Mix,
  ) {
    this.redis = new Redis(redisUrl, {
      maxRetriesPerRequest: 2,
      commandTimeout: 5_000,
      retryStrategy: () => 200,
    });
    this.redis.on('error', () => {});
    this.queue = new Queue('scrape', { connection: this.redis, prefix, skipVersionCheck: true });
    this.queue.on('error', () => {});
  }

  /** Resolves when all are accepted, and the cancels and removals of them made. */
  async run(scrapes: number, spanMs: number): Promise<void> {
    const random = seeded(hash32('producer', this.seed));
    const began = Date.now();
    const adding: Promise<void>[] = [];
    for (let index = 0; index < scrapes; index += 1) {
      await delay(Math.max(0, began + ((index + random()) / scrapes) * spanMs - Date.now()));
      adding.push(this.submit(jobAt(this.seed, index, this.mix)));
    }
    await Promise.all(adding);
    await Promise.all(this.later);
  }

  async close(): Promise<void> {
    await this.queue.close();
    this.redis.disconnect();
  }

  private async submit(job: PlannedJob): Promise<void> {
    await this.insist(() => this.add(job));
    const submitted: Submitted = { job, acceptedAt: Date.now(), cancel: null, removedAt: null };
    this.submitted.push(submitted);
    if (job.cancelAfterMs !== null) this.after(job.cancelAfterMs, () => this.cancel(submitted));
    if (job.removeAfterMs !== null) this.after(job.removeAfterMs, () => this.remove(submitted));
  }

  /** The same scrape again does nothing, so a producer that hears no answer just repeats itself. */
  private async add({ via, batch, id, key, job }: PlannedJob): Promise<void> {
    switch (via) {
      case 'bullmq':
        await this.queue.add('scrape', { batch, ...job }, { jobId: key });
        return;
      case 'stream':
        await this.redis.xadd(this.keys.intakeStream, '*', 'job', JSON.stringify({ id, batch, ...job }));
        return;
      case 'list':
        await this.redis.lpush(this.keys.intakeList, JSON.stringify({ id, batch, ...job }));
        return;
      default:
        return via satisfies never;
    }
  }

  private async cancel(submitted: Submitted): Promise<void> {
    const at = Date.now();
    const result = await this.insist(() => cancelScrape(this.deps(), submitted.job.key));
    submitted.cancel = { at, result };
  }

  private async remove(submitted: Submitted): Promise<void> {
    await this.insist(async () => {
      const job = await this.queue.getJob(submitted.job.key);
      // A worker has it, or one of its children, in hand just now: nothing is removed, so it is tried again.
      if (job !== undefined) await job.remove();
    });
    submitted.removedAt = Date.now();
  }

  private deps(): CancelDeps {
    const redis = withScripts(this.redis);
    return {
      redis,
      keys: this.keys,
      queues: this.cancelQueues(),
      store: new AttemptStore(redis, this.keys),
      servers: [server],
    };
  }

  private queues: Queues | null = null;
  private cancelQueues(): Queues {
    this.queues ??= new Queues(this.redis, this.keys, [server], () => {});
    return this.queues;
  }

  private after(ms: number, act: () => Promise<void>): void {
    const done: Promise<void> = delay(ms)
      .then(act)
      .finally(() => this.later.delete(done));
    this.later.add(done);
  }

  private async insist<T>(act: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await act();
      } catch (error) {
        if (tries >= 300) throw error;
        this.retries += 1;
        await delay(200);
      }
    }
  }
}
