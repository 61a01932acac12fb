import type { Redis } from 'ioredis';
import { outcomeOf } from '../../queue/known.js';
import type { Keys } from '../../queue/names.js';
import { publicQueue } from '../../queue/names.js';
import type { ScriptedRedis } from '../../queue/scripts.js';
import { splitJobKey } from '../../scrape/identity.js';
import type { OutcomeDocument } from '../../scrape/types.js';
import type { Sink } from '../../sinks/contract.js';
import type { Tally } from './tally.js';

export interface FollowDeps {
  readonly redis: ScriptedRedis;
  /** A connection of its own: it waits. */
  readonly blocking: Redis;
  readonly keys: Keys;
  readonly sink: Pick<Sink, 'find'>;
}

const blockMs = 1_000;
const atOnce = 1_000;
const lookEveryMs = 2_000;
/** A job that was missing this many looks in a row is gone: between two of its states it may be nowhere for a moment. */
const missingLooks = 3;
const doneRank = '6';

/** Where the event stream ends now; following from here misses nothing that happens from now on. */
export async function endOfEvents(redis: Redis, keys: Keys): Promise<string> {
  const [last] = await redis.xrevrange(keys.events, '+', '-', 'COUNT', 1);
  return last?.[0] ?? '0-0';
}

/**
 * Tells the tally of every scrape that ends. The event stream says so at once, but keeps only the last 100,000 entries and
 * is silent about jobs that somebody removed; so all that is open is looked up as well, in turns.
 */
export class Follower {
  private readonly missing = new Map<string, number>();

  constructor(
    private readonly deps: FollowDeps,
    private readonly tally: Tally,
    private readonly onSettled: () => void,
  ) {}

  /** Runs until the signal fires. */
  async follow(from: string, signal: AbortSignal): Promise<void> {
    await Promise.all([this.readEvents(from, signal), this.lookAround(signal)]);
  }

  private async readEvents(from: string, signal: AbortSignal): Promise<void> {
    const { blocking, keys } = this.deps;
    let position = from;
    while (!signal.aborted) {
      let reply: [string, [string, string[]][]][] | null;
      try {
        reply = await blocking.xread('COUNT', atOnce, 'BLOCK', blockMs, 'STREAMS', keys.events, position);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      for (const [id, fields] of reply?.[0]?.[1] ?? []) {
        position = id;
        const event = eventOf(fields);
        if (event.type !== 'scrape.settled') continue;
        const document = outcomeOf(event.data ?? null);
        if (document !== null) this.settle(`${event.batch}.${event.id}`, document);
      }
    }
  }

  private async lookAround(signal: AbortSignal): Promise<void> {
    let rest = this.tally.openKeys();
    while (!signal.aborted) {
      await pause(lookEveryMs, signal);
      const keys: string[] = [];
      while (keys.length < atOnce) {
        const next = rest.next();
        if (next.done) {
          rest = this.tally.openKeys();
          break;
        }
        keys.push(next.value);
      }
      if (keys.length > 0 && !signal.aborted) await this.look(keys);
    }
  }

  private async look(keys: readonly string[]): Promise<void> {
    const { redis } = this.deps;
    const pipeline = redis.pipeline();
    for (const key of keys) {
      pipeline.hget(this.deps.keys.attempt(key), 'ph');
      pipeline.exists(this.deps.keys.job(publicQueue, key));
    }
    const replies = (await pipeline.exec()) ?? [];
    for (const [index, key] of keys.entries()) {
      const phase = replies[2 * index]?.[1];
      const exists = replies[2 * index + 1]?.[1];
      if (phase !== doneRank && (phase !== null || exists !== 0)) this.missing.delete(key);
      else await this.lookOnDisk(key, phase === doneRank);
    }
  }

  /** Done, or gone: the outcome is in the results, or in the public job when the results were moved away. */
  private async lookOnDisk(key: string, done: boolean): Promise<void> {
    const { redis, sink } = this.deps;
    const scrape = splitJobKey(key);
    const settled = scrape === null ? null : await sink.find(scrape.batch, scrape.id);
    const document =
      settled?.outcome ??
      (done ? outcomeOf(await redis.hget(this.deps.keys.job(publicQueue, key), 'progress')) : null);
    if (document !== null) return this.settle(key, document);
    const looks = (this.missing.get(key) ?? 0) + 1;
    this.missing.set(key, looks);
    if (looks < missingLooks) return;
    this.missing.delete(key);
    this.tally.remove(key);
    this.onSettled();
  }

  private settle(key: string, document: OutcomeDocument): void {
    if (this.tally.settle(key, document)) this.onSettled();
  }
}

/** Field, value, field, value … → the fields. */
export function eventOf(
  fields: readonly string[],
): Partial<Record<'type' | 'id' | 'batch' | 'data', string>> {
  const event: Record<string, string> = {};
  for (let index = 0; index + 1 < fields.length; index += 2) {
    event[fields[index] as string] = fields[index + 1] as string;
  }
  return event;
}

/** Resolves after `ms`, or as soon as the signal fires. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
