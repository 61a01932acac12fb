import type { Outcome, OutcomeDocument } from '../scrape/types.js';
import type { Attempt, Decision, RunSpec } from './attempt.js';
import { count, duration, kept, quoted, usd } from './phrase.js';

/** What an outcome means to the person who asked (design A4). */
export type OutcomeClass = 'ok' | 'warning' | 'failure';

/** `onEmpty: fail` turns an empty success into a failure; everything else depends on the outcome alone. */
export function outcomeClass(outcome: Outcome, onEmpty: RunSpec['onEmpty'] = 'warn'): OutcomeClass {
  switch (outcome) {
    case 'succeeded':
      return 'ok';
    case 'empty':
      return onEmpty === 'fail' ? 'failure' : 'warning';
    case 'low_count':
    case 'capped':
      return 'warning';
    case 'failed':
    case 'deadline_exceeded':
    case 'cancelled':
    case 'expired':
    case 'rejected':
    case 'start_unknown':
    case 'lost':
    case 'errored':
      return 'failure';
    default:
      return outcome satisfies never;
  }
}

/** A decision that needs no run: refused, expired, cancelled in the queue, a fault of ours. */
export function decide(
  outcome: Outcome,
  message: string,
  now: number,
  warnings: readonly string[] = [],
): Decision {
  return { outcome, message, warnings, finishedAt: now };
}

/**
 * The decision on a run that is final and whose items are written. `shortOf` is the count the run claimed when its
 * dataset stayed behind it beyond all patience, else null.
 */
export function decideFinished(
  attempt: Attempt,
  spec: RunSpec,
  now: number,
  shortOf: number | null,
): Decision {
  const settle = (outcome: Outcome, message: string): Decision => ({
    outcome,
    message,
    warnings: attempt.warnings,
    finishedAt: now,
  });
  const { items, status } = attempt;
  if (attempt.cancelledAt !== null) return settle('cancelled', cancelledMessage(attempt));
  const ran = ranFor(attempt);
  if (status !== 'SUCCEEDED') {
    const cap = reachedCap(attempt, spec);
    if (cap !== null)
      return settle('capped', `The run ended ${status}${ran} at its own limit: ${cap}; ${kept(items)}`);
    if (attempt.abort === 'deadline' && status === 'ABORTED') {
      return settle(
        'deadline_exceeded',
        `Aborted after ${duration(spec.deadlineMs)}: the run was still under way with ${count(items, 'item')}; ${items === 0 ? 'nothing was lost.' : 'they were kept.'}`,
      );
    }
    return settle('failed', `The run ended ${status}${ran}; ${kept(items)}${quoted(attempt.statusMessage)}`);
  }
  if (shortOf !== null) {
    return settle(
      'failed',
      `The run SUCCEEDED with ${count(shortOf, 'item')} by its own count, but only ${items} could be read; they were kept.`,
    );
  }
  if (items === 0 && spec.minItems > 0) return settle('empty', emptyMessage(attempt));
  const spent = reachedCharge(attempt, spec);
  if (spent !== null) return settle('capped', `The run ended at its own limit: ${spent}; ${kept(items)}`);
  if (items < spec.minItems) {
    return settle(
      'low_count',
      `The run SUCCEEDED with ${count(items, 'item')}, fewer than the ${spec.minItems} expected.`,
    );
  }
  return settle(
    'succeeded',
    items === 0
      ? 'The run SUCCEEDED with no items, which minItems 0 calls a normal answer.'
      : `${count(items, 'item')} in ${count(attempt.pages, 'page')}.`,
  );
}

/** The message of a cancel, whichever stage it took hold in. */
export function cancelledMessage(attempt: Attempt): string {
  if (attempt.runId === null && attempt.n > 1) {
    return `Cancelled before attempt ${attempt.n} was started; what attempt ${attempt.n - 1} had spent stays spent.`;
  }
  if (attempt.runId === null) return 'Cancelled before a run was started; nothing was spent.';
  const spent = attempt.usageUsd === null ? '' : ` ${usd(attempt.usageUsd)} had been spent.`;
  return `Cancelled: the run is ${attempt.status ?? 'ended'}; ${count(attempt.items, 'item')} had been written and stay.${spent}`;
}

function ranFor(attempt: Attempt): string {
  if (attempt.startedAt === null || attempt.endedAt === null) return '';
  return ` after ${duration(attempt.endedAt - attempt.startedAt)}`;
}

function reachedCharge(attempt: Attempt, spec: RunSpec): string | null {
  if (spec.maxTotalChargeUsd === null || attempt.usageUsd === null) return null;
  if (attempt.usageUsd < 0.98 * spec.maxTotalChargeUsd) return null;
  return `${usd(attempt.usageUsd)} of maxTotalChargeUsd ${usd(spec.maxTotalChargeUsd)} were spent`;
}

function reachedCap(attempt: Attempt, spec: RunSpec): string | null {
  const charge = reachedCharge(attempt, spec);
  if (charge !== null) return charge;
  if (spec.maxItems !== null && attempt.items >= spec.maxItems)
    return `maxItems ${spec.maxItems} was reached`;
  return null;
}

function emptyMessage(attempt: Attempt): string {
  const elsewhere =
    attempt.elsewhere.length === 0 ? '' : ` Not empty: ${attempt.elsewhere.slice(0, 5).join(', ')}.`;
  return `The run SUCCEEDED but its dataset holds no items.${elsewhere}${quoted(attempt.statusMessage)}`;
}

/** Whether the decision leads to another attempt by itself (design A4, Retries). */
export function shouldRetry(
  attempt: Attempt,
  spec: Pick<RunSpec, 'retries' | 'onEmpty'>,
  decision: Decision,
): boolean {
  if (attempt.cancelledAt !== null || attempt.n > spec.retries) return false;
  switch (decision.outcome) {
    case 'failed':
    case 'deadline_exceeded':
      return true;
    case 'empty':
      return spec.onEmpty === 'retry';
    case 'succeeded':
    case 'low_count':
    case 'capped':
    case 'cancelled':
    case 'expired':
    case 'rejected':
    case 'start_unknown':
    case 'lost':
    case 'errored':
      return false;
    default:
      return decision.outcome satisfies never;
  }
}

/** What of a job an outcome document repeats. */
export interface Subject {
  readonly id: string;
  readonly batch: string;
  readonly server: string;
  readonly tool: string;
  readonly meta: unknown;
}

/** The document of a decided attempt (design A4). The same state always gives the same document. */
export function outcomeDocument(
  attempt: Attempt,
  subject: Subject,
  decision: Decision,
  destination: string | null,
): OutcomeDocument {
  const begun = attempt.startedAt ?? attempt.submittedAt;
  return {
    id: subject.id,
    batch: subject.batch,
    server: subject.server,
    tool: subject.tool,
    outcome: decision.outcome,
    message: decision.message,
    runId: attempt.runId,
    datasetId: attempt.datasetId,
    runStatus: attempt.status,
    statusMessage: attempt.statusMessage,
    items: attempt.items,
    pages: attempt.pages,
    bytes: attempt.bytes,
    usageUsd: totalUsage(attempt),
    attempt: attempt.n,
    polls: attempt.polls,
    submittedAt: isoTime(attempt.submittedAt),
    startedAt: attempt.startedAt === null ? null : isoTime(attempt.startedAt),
    finishedAt: isoTime(decision.finishedAt),
    durationSeconds: Math.max(0, Math.round((decision.finishedAt - begun) / 100) / 10) || 0,
    destination: attempt.pages > 0 || attempt.recordsDone > 0 ? destination : null,
    warnings: decision.warnings,
    meta: subject.meta ?? null,
  };
}

/** The times Date can write. A job's `timestamp` is its producer's to choose, and no outcome may fail on it. */
const longestTime = 8.64e15;

function isoTime(ms: number): string {
  return new Date(Math.max(-longestTime, Math.min(longestTime, Number.isNaN(ms) ? 0 : ms))).toISOString();
}

/** What all attempts of the scrape have spent together; null when nothing is known. */
export function totalUsage(attempt: Pick<Attempt, 'usageUsd' | 'usageBefore'>): number | null {
  if (attempt.usageUsd === null && attempt.usageBefore === null) return null;
  return (attempt.usageUsd ?? 0) + (attempt.usageBefore ?? 0);
}
