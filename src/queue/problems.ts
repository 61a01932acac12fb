import { outcomeClass } from '../run/outcome.js';
import type { OutcomeDocument } from '../scrape/types.js';
import { outcomeOf } from './known.js';
import { type Keys, publicQueue } from './names.js';
import type { ScriptedRedis } from './scripts.js';

export interface ProblemPage {
  /** Newest first. */
  readonly outcomes: readonly OutcomeDocument[];
  /** Where to go on; null when there is no more. */
  readonly next: string | null;
}

interface ProblemDeps {
  readonly redis: ScriptedRedis;
  readonly keys: Keys;
}

/**
 * Failed scrapes, from BullMQ's set of failed jobs, which keeps each for `keep.failed`.
 * @param cursor `next` of the page before (`<ms>-<how many of that ms were shown>`), null for the first
 * @returns null when the cursor is none of ours
 */
export async function listFailures(
  { redis, keys }: ProblemDeps,
  cursor: string | null,
  limit: number,
): Promise<ProblemPage | null> {
  const from = cursor === null ? null : /^(\d{1,15})-(\d{1,6})$/.exec(cursor);
  if (cursor !== null && from === null) return null;
  const found = await redis.zrevrangebyscore(
    `${keys.queue(publicQueue)}:failed`,
    from?.[1] ?? '+inf',
    '-inf',
    'WITHSCORES',
    'LIMIT',
    Number(from?.[2] ?? 0),
    limit,
  );
  const jobs = Array.from({ length: found.length / 2 }, (_, index) => ({
    id: found[2 * index] as string,
    at: found[2 * index + 1] as string,
  }));
  const pipeline = redis.pipeline();
  for (const { id } of jobs) pipeline.hget(keys.job(publicQueue, id), 'progress');
  const replies = jobs.length === 0 ? [] : ((await pipeline.exec()) ?? []);
  const outcomes = replies.flatMap(([, progress]) => outcomeOf(progress as string | null) ?? []);
  const last = jobs.at(-1)?.at;
  if (last === undefined || jobs.length < limit) return { outcomes, next: null };
  const same = jobs.filter(({ at }) => at === last).length;
  const before = last === from?.[1] ? Number(from[2]) : 0;
  return { outcomes, next: `${last}-${same + before}` };
}

/** Entries of the event stream that one call reads at most: among very many good scrapes the next call goes on. */
const readAtMost = 2_000;
const readAtOnce = 500;

/**
 * Scrapes that settled with a warning, from the event stream: as far back as that reaches (some 100,000 events).
 * @param cursor `next` of the page before (an id of the stream), null for the first
 * @returns null when the cursor is none of ours
 */
export async function listWarnings(
  { redis, keys }: ProblemDeps,
  cursor: string | null,
  limit: number,
): Promise<ProblemPage | null> {
  if (cursor !== null && !/^\d{1,15}-\d{1,10}$/.test(cursor)) return null;
  const outcomes: OutcomeDocument[] = [];
  let end = cursor === null ? '+' : `(${cursor}`;
  let last: string | null = null;
  for (let read = 0; read < readAtMost; ) {
    const entries = await redis.xrevrange(keys.events, end, '-', 'COUNT', readAtOnce);
    for (const [id, fields] of entries) {
      last = id;
      const outcome = warningIn(fields);
      if (outcome !== null) outcomes.push(outcome);
      if (outcomes.length >= limit) return { outcomes, next: id };
    }
    if (entries.length < readAtOnce) return { outcomes, next: null };
    read += entries.length;
    end = `(${last}`;
  }
  return { outcomes, next: last };
}

function warningIn(fields: readonly string[]): OutcomeDocument | null {
  const read = (name: string): string | null => {
    for (let index = 0; index + 1 < fields.length; index += 2) {
      if (fields[index] === name) return fields[index + 1] as string;
    }
    return null;
  };
  if (read('type') !== 'scrape.settled') return null;
  const outcome = outcomeOf(read('data'));
  return outcome !== null && outcomeClass(outcome.outcome) === 'warning' ? outcome : null;
}

/** The newest warnings, read again only when something has happened since: a page that is open asks every few seconds. */
export class LatestWarnings {
  #seen: { readonly key: string; readonly page: ProblemPage | null } | null = null;

  constructor(private readonly deps: ProblemDeps) {}

  async list(limit: number): Promise<ProblemPage | null> {
    const { redis, keys } = this.deps;
    const [newest] = await redis.xrevrange(keys.events, '+', '-', 'COUNT', 1);
    const key = `${newest?.[0] ?? 'none'} ${limit}`;
    if (this.#seen?.key !== key) this.#seen = { key, page: await listWarnings(this.deps, null, limit) };
    return this.#seen.page;
  }
}
