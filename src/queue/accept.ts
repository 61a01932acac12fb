import type { Attempt } from '../run/attempt.js';
import { outcomeClass } from '../run/outcome.js';
import { digestOf, jobKey } from '../scrape/identity.js';
import type { OutcomeDocument, Scrape } from '../scrape/types.js';
import type { Sink } from '../sinks/contract.js';
import { attemptOf } from './attempt-store.js';
import type { Keys } from './names.js';
import type { ScriptedRedis } from './scripts.js';

export interface AcceptDeps {
  readonly redis: ScriptedRedis;
  readonly keys: Keys;
  readonly sink: Sink;
  readonly keep: { readonly settledMs: number; readonly failedMs: number };
}

export type Accepted =
  | { readonly do: 'start'; readonly attempt: Attempt }
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
  const [known, cancel, batchCancel] = (await deps.redis.trawlAccept(
    deps.keys.attempt(key),
    deps.keys.batch(scrape.batch),
    deps.keys.waiting(key),
    jobId === key ? '' : jobId,
    submittedAt,
    digest,
    Math.max(deps.keep.settledMs, deps.keep.failedMs),
    number,
    key,
  )) as [string, (string | null)?, (string | null)?];
  if (cancel === undefined) return known !== '' && known !== digest ? conflict(key) : { do: 'known' };
  const fields = {
    n: String(number),
    ph: '0',
    at: String(submittedAt),
    ...(jobId === key ? {} : { job: jobId, dg: digest }),
    ...(cancel === null ? {} : { cx: cancel }),
  };
  const attempt = attemptOf(key, fields, batchCancel ?? null);
  if (attempt === null) throw new Error('an attempt with a number and a phase');
  return { do: 'start', attempt };
}

export function conflict(key: string): { do: 'conflict'; message: string } {
  return {
    do: 'conflict',
    message: `The scrape ${key} is known with another tool, input or server; give the new one another id or batch.`,
  };
}
