import { digestOf, jobKey } from '../scrape/identity.js';
import type { OutcomeDocument, Scrape } from '../scrape/types.js';
import type { Sink } from '../sinks/contract.js';
import type { Keys } from './names.js';
import { publicQueue } from './names.js';
import type { ScriptedRedis } from './scripts.js';
import { digestOfData } from './submit.js';

/** What is known of a scrape before it is submitted. */
export type Known =
  | { readonly state: 'fresh' }
  /** Submitted; nothing has been started yet, so nothing was spent. */
  | { readonly state: 'waiting' }
  | { readonly state: 'under_way' }
  | { readonly state: 'settled'; readonly outcome: OutcomeDocument }
  | { readonly state: 'conflict' };

export interface KnownDeps {
  /** null: only the disk is asked. */
  readonly redis: { readonly client: ScriptedRedis; readonly keys: Keys } | null;
  readonly sink: Pick<Sink, 'find'>;
}

/** Phases of `src/run/attempt.ts` by rank: below, nothing has been started; at `done` the outcome is published. */
const startingRank = 1;
const doneRank = 6;

/**
 * Looks up scrapes without changing anything (design A2, Identity); a few hundred at a time. The states are in the order
 * of the scrapes.
 */
export async function lookUp(deps: KnownDeps, scrapes: readonly Scrape[]): Promise<Known[]> {
  const inRedis = deps.redis === null ? [] : await readRedis(deps.redis, scrapes);
  return Promise.all(scrapes.map((scrape, index) => stateOf(deps, scrape, inRedis[index])));
}

interface Seen {
  readonly digest: string | null;
  readonly phase: number | null;
  readonly data: string | null;
  readonly progress: string | null;
}

async function stateOf(deps: KnownDeps, scrape: Scrape, seen: Seen | undefined): Promise<Known> {
  const digest = digestOf(scrape.tool, scrape.input, scrape.server);
  // A scrape that waits has its digest in its job alone.
  const known =
    seen?.digest || (seen?.data == null ? (seen?.digest ?? null) : digestOfData(seen.data, scrape));
  if (known !== null && known !== '' && known !== digest) return { state: 'conflict' };
  if (known !== null && seen?.phase !== doneRank) {
    return { state: (seen?.phase ?? 0) < startingRank ? 'waiting' : 'under_way' };
  }
  const settled = await deps.sink.find(scrape.batch, scrape.id);
  if (settled !== null) {
    const same = settled.digest === null || settled.digest === digest;
    return same ? { state: 'settled', outcome: settled.outcome } : { state: 'conflict' };
  }
  if (known === null) return { state: 'fresh' };
  // Settled, and its results were moved away: the public job keeps the document as its progress.
  const outcome = outcomeOf(seen?.progress ?? null);
  return outcome === null ? { state: 'under_way' } : { state: 'settled', outcome };
}

async function readRedis(
  { client, keys }: NonNullable<KnownDeps['redis']>,
  scrapes: readonly Scrape[],
): Promise<Seen[]> {
  const pipeline = client.pipeline();
  for (const scrape of scrapes) {
    const key = jobKey(scrape.batch, scrape.id);
    pipeline.hmget(keys.attempt(key), 'dg', 'ph');
    pipeline.hmget(keys.job(publicQueue, key), 'data', 'progress');
  }
  const replies = (await pipeline.exec()) ?? [];
  const reply = (index: number): (string | null)[] => {
    const [error, value] = replies[index] ?? [null, null];
    if (error) throw error;
    return (value as (string | null)[] | null) ?? [];
  };
  return scrapes.map((_, index) => {
    const [digest = null, phase = null] = reply(2 * index);
    const [data = null, progress = null] = reply(2 * index + 1);
    return { digest, phase: phase === null ? null : Number(phase), data, progress };
  });
}

/** The outcome document in a public job's progress, as Redis has it; null when there is none. */
export function outcomeOf(progress: string | null): OutcomeDocument | null {
  if (progress === null) return null;
  try {
    return outcomeIn(JSON.parse(progress));
  } catch {
    return null;
  }
}

/** The same of a progress that is parsed already. Any BullMQ client may have written it. */
export function outcomeIn(progress: unknown): OutcomeDocument | null {
  const isDocument =
    typeof progress === 'object' && progress !== null && 'outcome' in progress && 'message' in progress;
  return isDocument ? (progress as OutcomeDocument) : null;
}
