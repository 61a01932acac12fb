import { randomBytes } from 'node:crypto';
import type { Attempt, Decision } from '../run/attempt.js';
import { outcomeDocument, type Subject } from '../run/outcome.js';
import type { OutcomeDocument } from '../scrape/types.js';
import type { Sink } from '../sinks/contract.js';
import { type Keys, publicQueue } from './names.js';
import type { ScriptedRedis } from './scripts.js';

/** The event stream is a notice board, not a log: about this many entries stay. */
export const eventBound = 100_000;

/** The looks at a run are for whoever asks soon after how it went: 300 bytes a scrape, for a day. */
const looksMs = 24 * 3_600_000;

export interface PublishDeps {
  readonly redis: ScriptedRedis;
  readonly keys: Keys;
  readonly sink: Sink;
  readonly keep: { readonly settledMs: number; readonly failedMs: number };
  /** How long the run of a settled attempt stays claimed. */
  readonly claimMs: number;
}

/**
 * Publishes a decided attempt: `outcome.json` first (its presence means settled), then, once only and in one step, the
 * counts of the batch, the `scrape.settled` event and the document on the public job. Called again after a crash it finds
 * what is done and gives the same document.
 *
 * @param finishes how often the public job had ended before; a later retry shows by a larger number
 * @returns the durable document, and whether this call was the first to publish it
 * @throws SinkHeldError when the sink refuses writes: nothing is published, call again later
 */
export async function publishOutcome(
  deps: PublishDeps,
  attempt: Attempt,
  subject: Subject & { readonly digest?: string },
  decision: Decision,
  finishes: number,
): Promise<{ document: OutcomeDocument; first: boolean }> {
  const draft = outcomeDocument(attempt, subject, decision, deps.sink.destination(subject));
  const digest = attempt.digest !== '' ? attempt.digest : (subject.digest ?? '');
  const target = { batch: subject.batch, id: subject.id, attempt: attempt.n, digest };
  await deps.sink.begin(target);
  const document = await deps.sink.settle(target, draft);
  const longest = Math.max(deps.keep.settledMs, deps.keep.failedMs);
  const result = await deps.redis.trawlDone(
    deps.keys.attempt(attempt.scrape),
    deps.keys.batch(subject.batch),
    deps.keys.events,
    deps.keys.waiting(attempt.scrape),
    deps.keys.job(publicQueue, attempt.jobId),
    deps.keys.looks(attempt.scrape),
    attempt.n,
    document.outcome,
    finishes,
    JSON.stringify(document),
    subject.id,
    subject.batch,
    longest,
    eventBound,
    document.items,
    // As the document says: after a crash in here the attempt may know of a later bill.
    document.usageUsd ?? '',
    longest,
    digest,
    attempt.scrape,
    deps.claimMs,
    // Redis takes no lifetime of 0, which `keep.settled: 0` would be.
    Math.max(1, Math.min(longest, looksMs)),
    randomBytes(6).toString('base64url'),
  );
  return { document, first: result === 1 };
}
