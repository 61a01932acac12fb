import { setTimeout as delay } from 'node:timers/promises';
import { longestJob, readIntakeJob } from '../src/queue/intake-job.js';
import { IntakeList } from '../src/queue/intake-list.js';
import { excerpt, type IntakeEntry, type IntakeSource } from '../src/queue/intake-source.js';
import { IntakeStream } from '../src/queue/intake-stream.js';
import { submitScrapes } from '../src/queue/submit.js';
import type { Scrape } from '../src/scrape/types.js';
import type { WorkerContext } from './context.js';

type SourceName = 'stream' | 'list';

interface Rejected {
  readonly entry: IntakeEntry;
  readonly reason: string;
}

export type IntakeContext = Pick<
  WorkerContext,
  'config' | 'redis' | 'keys' | 'queues' | 'sink' | 'metrics' | 'log' | 'owner' | 'now'
> &
  Partial<Pick<WorkerContext, 'tracing'>>;

export interface IntakeOptions {
  /** A process that has had jobs in hand for so long is taken for dead. */
  readonly claimAfterMs?: number;
  /** How often an empty source is looked at. */
  readonly pollMs?: number;
}

const claimAfterMs = 60_000;
/** Asked, not blocked on: a blocking read would hand over a first message of any size, and hang across a failover. */
const pollMs = 250;
const longestPauseMs = 30_000;
const entriesAtOnce = 200;
const bytesAtOnce = 8 * 1024 * 1024;
/** The backlog is counted this often; in between, what this process adds is counted on. */
const countEveryMs = 500;
const rejectedBound = 10_000;
/** A producer that sends nothing but nonsense fills the rejects, which are bounded, and not the log. */
const loggedATurn = 5;
const stopMs = 5_000;

/**
 * Takes jobs from the intake stream and list (design A7), hands them on to the public queue, and only then lets go of
 * them. What cannot be a scrape goes to `intake:rejected` with the reason. A crash in between repeats a turn, which
 * starts nothing twice: a job keeps its id.
 */
export class Intake {
  private readonly sources = new Map<SourceName, IntakeSource>();
  private readonly loops: Promise<void>[] = [];
  private readonly stopper = new AbortController();
  private readonly pollMs: number;
  private counted = { at: Number.NEGATIVE_INFINITY, backlog: 0 };

  constructor(
    private readonly ctx: IntakeContext,
    options: IntakeOptions = {},
  ) {
    const { redis, keys, owner, config, now } = ctx;
    const idle = options.claimAfterMs ?? claimAfterMs;
    this.pollMs = options.pollMs ?? pollMs;
    if (config.intake.stream) this.sources.set('stream', new IntakeStream(redis, keys, owner, idle, now));
    if (config.intake.list) this.sources.set('list', new IntakeList(redis, keys, owner, idle));
  }

  start(): void {
    for (const [name, source] of this.sources) this.loops.push(this.loop(name, source));
  }

  /** A turn in hand ends first; with Redis away it is left, after 5 s, to whichever process claims it. */
  async stop(): Promise<void> {
    this.stopper.abort();
    await Promise.race([Promise.allSettled(this.loops), delay(stopMs, undefined, { ref: false })]);
  }

  private async loop(name: SourceName, source: IntakeSource): Promise<void> {
    const { signal } = this.stopper;
    let failures = 0;
    while (!signal.aborted) {
      let pauseMs = this.pollMs;
      try {
        if (await this.turn(name, source)) pauseMs = 0;
        failures = 0;
      } catch (error) {
        failures += 1;
        source.failed();
        pauseMs = Math.min(longestPauseMs, 250 * 2 ** Math.min(10, failures));
        this.ctx.log
          .module('intake')
          .warn(
            { event: 'intake.failed', source: name, err: error },
            'intake could not go on; it is tried again, and nothing is lost',
          );
      }
      if (pauseMs > 0) await delay(pauseMs, undefined, { signal }).catch(() => {});
    }
    await source.leave().catch((error: unknown) => {
      this.ctx.log
        .module('intake')
        .debug({ event: 'intake.failed', source: name, err: error }, 'intake left without a word');
    });
  }

  /** @returns whether there may be more at once */
  private async turn(name: SourceName, source: IntakeSource): Promise<boolean> {
    const { config } = this.ctx;
    const room = await this.room();
    // A full backlog leaves jobs where their producers put them.
    if (room <= 0) return false;
    const entries = await source.take({
      entries: Math.min(entriesAtOnce, room),
      bytes: bytesAtOnce,
      longest: longestJob(config),
    });
    if (entries.length === 0) return false;
    const rejected = await this.accept(name, entries);
    await this.reject(name, rejected);
    await source.done(entries);
    return true;
  }

  /** Free places up to `intake.backlog`. Several processes may exceed it by what each takes in half a second. */
  private async room(): Promise<number> {
    const { ctx, counted } = this;
    if (ctx.now() - counted.at >= countEveryMs) {
      const queues = ctx.queues.all.filter(({ name }) => name === 'scrape' || name.startsWith('start-'));
      const counts = await Promise.all(
        queues.map((queue) => queue.getJobCounts('waiting', 'prioritized', 'delayed', 'active')),
      );
      const backlog = counts.flatMap(Object.values<number>).reduce((sum, count) => sum + count, 0);
      this.counted = { at: ctx.now(), backlog };
    }
    return ctx.config.intake.backlog - this.counted.backlog;
  }

  private async accept(name: SourceName, entries: readonly IntakeEntry[]): Promise<Rejected[]> {
    const { ctx } = this;
    const rejected: Rejected[] = [];
    const read: { scrape: Scrape; entry: IntakeEntry }[] = [];
    for (const entry of entries) {
      const job = readIntakeJob(ctx.config, name, entry);
      if (job.ok) read.push({ scrape: job.scrape, entry });
      else rejected.push({ entry, reason: job.reason });
    }
    const results = await submitScrapes(
      ctx,
      read.map(({ scrape }) => scrape),
    );
    for (const [index, { result, key }] of results.entries()) {
      const { scrape, entry } = read[index] as (typeof read)[number];
      switch (result) {
        case 'submitted':
          this.counted.backlog += 1;
          break;
        case 'known':
        case 'settled':
          ctx.metrics.scrapeDeduplicated(scrape.server);
          break;
        case 'conflict':
          rejected.push({
            entry,
            reason: `The scrape ${key} is known with another tool, input or server; give this one another id or batch.`,
          });
          break;
        default:
          result satisfies never;
      }
    }
    return rejected;
  }

  private async reject(name: SourceName, rejected: readonly Rejected[]): Promise<void> {
    if (rejected.length === 0) return;
    const { redis, keys, log, metrics, now } = this.ctx;
    const pipeline = redis.pipeline();
    for (const { entry, reason } of rejected) {
      const fields = { source: name, reason, job: entry.text.slice(0, excerpt), at: String(now()) };
      pipeline.xadd(keys.intakeRejected, 'MAXLEN', '~', rejectedBound, '*', ...Object.entries(fields).flat());
    }
    for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
    for (const [index, { reason }] of rejected.entries()) {
      metrics.jobInvalid(name);
      if (index < loggedATurn) {
        log
          .module('intake')
          .warn({ event: 'job.invalid', source: name, message: reason }, 'a job was rejected');
      }
    }
    if (rejected.length > loggedATurn) {
      const more = rejected.length - loggedATurn;
      log
        .module('intake')
        .warn({ event: 'job.invalid', source: name, count: more }, `${more} more jobs were rejected`);
    }
  }
}
