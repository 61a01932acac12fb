import type { Redis } from 'ioredis';
import { readIntakeJob } from '../src/queue/intake-job.js';
import { type Submitted, submitScrapes } from '../src/queue/submit.js';
import type { Scrape } from '../src/scrape/types.js';
import type { WorkerContext } from './context.js';

const group = 'trawl';
const blockMs = 1_000;
const atOnce = 100;
/** A consumer that has not acknowledged for this long is dead, and its entries are another's. */
const claimAfterMs = 60_000;
const rejectedBound = 10_000;
/** Of a rejected job this much is kept, enough to recognise it. */
const excerpt = 2_000;

type Source = 'stream' | 'list';

/**
 * Takes jobs from the intake stream and list (design A7) into the public queue. An entry is acknowledged, or taken off
 * the list of this process, only once it is accepted or rejected; what a dead process had in hand is taken over.
 */
export class Intake {
  private readonly loops: Promise<void>[] = [];
  private stopping = false;
  private readonly taken: string;

  constructor(
    private readonly ctx: WorkerContext,
    private readonly blocking: { readonly stream: Redis; readonly list: Redis },
  ) {
    this.taken = `${ctx.keys.intakeList}:taken:${ctx.owner}`;
  }

  start(): void {
    const { intake } = this.ctx.config;
    if (intake.stream) this.loops.push(this.loop('stream', () => this.takeFromStream()));
    if (intake.list) this.loops.push(this.loop('list', () => this.takeFromList()));
  }

  async stop(): Promise<void> {
    this.stopping = true;
    await Promise.allSettled(this.loops);
    await this.giveBack(this.taken).catch(() => {});
    await this.ctx.redis.zrem(this.owners, this.taken).catch(() => {});
  }

  private get owners(): string {
    return `${this.ctx.keys.intakeList}:owners`;
  }

  private async loop(source: Source, turn: () => Promise<void>): Promise<void> {
    while (!this.stopping) {
      try {
        if (await this.full()) await sleep(blockMs);
        else await turn();
      } catch (error) {
        if (this.stopping) return;
        this.ctx.log.warn(
          { event: 'intake.failed', source, err: error },
          'intake could not go on; it is tried again',
        );
        await sleep(blockMs);
      }
    }
  }

  /** A full backlog leaves jobs where their producers put them. */
  private async full(): Promise<boolean> {
    const counts = await Promise.all(
      this.ctx.queues.all
        .filter((queue) => queue.name === 'scrape' || queue.name.startsWith('start-'))
        .map((queue) => queue.getJobCounts('waiting', 'prioritized', 'delayed')),
    );
    const backlog = counts.reduce((sum, c) => sum + Object.values(c).reduce((a, b) => a + b, 0), 0);
    return backlog >= this.ctx.config.intake.backlog;
  }

  private async takeFromStream(): Promise<void> {
    const { keys, owner } = this.ctx;
    const { stream } = this.blocking;
    await this.ensureGroup();
    const [, claimed] = (await stream.xautoclaim(
      keys.intakeStream,
      group,
      owner,
      claimAfterMs,
      '0-0',
      'COUNT',
      atOnce,
    )) as [string, Entry[]];
    if (claimed.length > 0) await this.acceptEntries(claimed);
    const reply = (await stream.xreadgroup(
      'GROUP',
      group,
      owner,
      'COUNT',
      atOnce,
      'BLOCK',
      blockMs,
      'STREAMS',
      keys.intakeStream,
      '>',
    )) as [string, Entry[]][] | null;
    for (const [, entries] of reply ?? []) await this.acceptEntries(entries);
  }

  private async acceptEntries(entries: readonly Entry[]): Promise<void> {
    const { redis, keys } = this.ctx;
    const texts = entries.map(([, fields]) => fieldOf(fields ?? [], 'job') ?? '');
    await this.accept('stream', texts);
    const ids = entries.map(([id]) => id);
    // Deleted as well: an acknowledged entry would stay in the stream for ever.
    await redis
      .multi()
      .xack(keys.intakeStream, group, ...ids)
      .xdel(keys.intakeStream, ...ids)
      .exec();
  }

  private async takeFromList(): Promise<void> {
    const { redis, keys } = this.ctx;
    await redis.zadd(this.owners, this.ctx.now(), this.taken);
    await this.adoptDead();
    const first = await this.blocking.list.blmove(
      keys.intakeList,
      this.taken,
      'RIGHT',
      'LEFT',
      blockMs / 1000,
    );
    if (first === null) return;
    const texts = [first];
    while (texts.length < atOnce) {
      const next = await redis.lmove(keys.intakeList, this.taken, 'RIGHT', 'LEFT');
      if (next === null) break;
      texts.push(next);
    }
    await this.accept('list', texts);
    await redis.ltrim(this.taken, texts.length, -1);
  }

  /** Puts back what processes had in hand that have not been seen for a minute. */
  private async adoptDead(): Promise<void> {
    const { redis } = this.ctx;
    const dead = await redis.zrangebyscore(this.owners, 0, this.ctx.now() - claimAfterMs, 'LIMIT', 0, 10);
    for (const list of dead) {
      await this.giveBack(list);
      await redis.zrem(this.owners, list);
    }
  }

  private async giveBack(list: string): Promise<void> {
    const { redis, keys } = this.ctx;
    while ((await redis.lmove(list, keys.intakeList, 'LEFT', 'RIGHT')) !== null);
  }

  private async accept(source: Source, texts: readonly string[]): Promise<void> {
    const { ctx } = this;
    const scrapes: Scrape[] = [];
    const origin: string[] = [];
    for (const text of texts) {
      const read = readIntakeJob(ctx.config, source, text);
      if (read.ok) {
        scrapes.push(read.scrape);
        origin.push(text);
      } else await this.reject(source, text, read.reason);
    }
    const results: Submitted[] = await submitScrapes(ctx, scrapes);
    for (const [index, result] of results.entries()) {
      const scrape = scrapes[index] as Scrape;
      if (result.result === 'conflict') {
        const reason = `The scrape ${result.key} is known with another tool, input or server.`;
        await this.reject(source, origin[index] as string, reason);
      } else if (result.result !== 'submitted') ctx.metrics.scrapeDeduplicated(scrape.server);
    }
  }

  private async reject(source: Source, text: string, reason: string): Promise<void> {
    const { ctx } = this;
    ctx.metrics.jobInvalid(source);
    ctx.log.warn({ event: 'job.invalid', source, message: reason }, 'a job was rejected');
    const fields = [
      'source',
      source,
      'reason',
      reason,
      'job',
      text.slice(0, excerpt),
      'at',
      String(ctx.now()),
    ];
    await ctx.redis.xadd(ctx.keys.intakeRejected, 'MAXLEN', '~', rejectedBound, '*', ...fields);
  }

  private async ensureGroup(): Promise<void> {
    try {
      await this.ctx.redis.xgroup('CREATE', this.ctx.keys.intakeStream, group, '0', 'MKSTREAM');
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('BUSYGROUP')) throw error;
    }
  }
}

type Entry = [id: string, fields: string[] | null];

function fieldOf(fields: readonly string[], name: string): string | undefined {
  for (let index = 0; index + 1 < fields.length; index += 2) {
    if (fields[index] === name) return fields[index + 1];
  }
  return undefined;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
