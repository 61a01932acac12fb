import { outcomeClass } from '../run/outcome.js';
import { digestOf, jobKey } from '../scrape/identity.js';
import type { OutcomeDocument, Scrape } from '../scrape/types.js';
import type { Sink } from '../sinks/contract.js';
import type { Keys } from './names.js';
import type { ScriptedRedis } from './scripts.js';

export interface AcceptDeps {
  readonly redis: ScriptedRedis;
  readonly keys: Keys;
  readonly sink: Sink;
  readonly keep: { readonly settledMs: number; readonly failedMs: number };
}

export type Accepted =
  | { readonly do: 'start' }
  /** Known in Redis under another public job, or accepted a moment ago. */
  | { readonly do: 'known' }
  /** Settled on disk: nothing is started. */
  | { readonly do: 'settled'; readonly outcome: OutcomeDocument }
  | { readonly do: 'conflict'; readonly message: string };

/**
 * First sight of a scrape (design A2, Identity): the same (batch, id) that is known in Redis or settled on disk starts
 * nothing; with another tool, input or server it is a conflict.
 *
 * @param retried the public job had ended before and was retried: a failure on disk is followed by the next attempt
 */
export async function acceptScrape(
  deps: AcceptDeps,
  scrape: Scrape,
  jobId: string,
  submittedAt: number,
  retried: boolean,
): Promise<Accepted> {
  const key = jobKey(scrape.batch, scrape.id);
  const digest = digestOf(scrape.tool, scrape.input, scrape.server);
  const settled = await deps.sink.find(scrape.batch, scrape.id);
  let number: number;
  if (settled !== null) {
    if (settled.digest !== null && settled.digest !== digest) return conflict(key);
    const failure = outcomeClass(settled.outcome.outcome, scrape.onEmpty) === 'failure';
    if (!retried || !failure) return { do: 'settled', outcome: settled.outcome };
    number = settled.outcome.attempt + 1;
  } else {
    // Redis may have forgotten a scrape that was under way: its pages are of another run than the one to come.
    number = (await deps.sink.lastAttempt(scrape.batch, scrape.id)) + 1;
  }
  const reply = await deps.redis.trawlAccept(
    deps.keys.attempt(key),
    deps.keys.batch(scrape.batch),
    deps.keys.waiting(key),
    jobId === key ? '' : jobId,
    submittedAt,
    digest,
    Math.max(deps.keep.settledMs, deps.keep.failedMs),
    number,
    key,
  );
  if (reply !== 1) {
    const known = (reply as (string | null)[])[1];
    return known !== null && known !== '' && known !== digest ? conflict(key) : { do: 'known' };
  }
  return { do: 'start' };
}

export function conflict(key: string): { do: 'conflict'; message: string } {
  return {
    do: 'conflict',
    message: `The scrape ${key} is known with another tool, input or server; give the new one another id or batch.`,
  };
}
