import type { CallFailure, CallResult, HoldReason, RunView } from '../mcp/port.js';
import type { AbortReason, Attempt, Decision, RunSpec } from './attempt.js';
import { decide, decideFinished } from './outcome.js';
import { count, duration, plain } from './phrase.js';
import { abortPatienceMs, lostAfterMs, nextAbortAt, nextPollAt, runEnd } from './schedule.js';

/** What the server said of a run, as far as the attempt's state takes it over. */
export interface Sighting {
  readonly status: string;
  readonly statusMessage: string | null;
  readonly datasetId: string | null;
  readonly storeId: string | null;
  readonly itemCount: number | null;
  readonly usageUsd: number | null;
  readonly endedAt: number | null;
  readonly elsewhere: readonly string[];
}

export type AfterLook =
  | { readonly do: 'wait'; readonly until: number; readonly sighting: Sighting | null }
  | { readonly do: 'abort'; readonly reason: AbortReason; readonly sighting: Sighting | null }
  | { readonly do: 'read'; readonly sighting: Sighting }
  | { readonly do: 'settle'; readonly sighting: Sighting | null; readonly decision: Decision }
  /** The run is fine as far as we know; the server is not. */
  | {
      readonly do: 'hold';
      readonly until: number;
      readonly reason: HoldReason;
      readonly message: string;
      readonly retryAfterMs: number | null;
    }
  /** "I do not know this run": counted, and believed only when it is repeated for a minute. */
  | { readonly do: 'doubt'; readonly until: number };

/** Before a poll: a run that shall be aborted is not polled any more. */
export function beforePoll(attempt: Attempt): 'poll' | 'abort' | 'hand_on' | 'search' | 'nothing' {
  switch (attempt.phase) {
    case 'running':
      return attempt.cancelledAt === null ? 'poll' : 'abort';
    case 'aborting':
      return 'abort';
    case 'reading':
      return 'hand_on';
    // The answer of the start was lost; its run is looked for.
    case 'starting':
      return attempt.intentAt === null ? 'nothing' : 'search';
    case 'queued':
    case 'decided':
    case 'done':
      return 'nothing';
    default:
      return attempt.phase satisfies never;
  }
}

/** What a poll's answer means. The deadline always ends in an abort when the run is still under way. */
export function afterPoll(
  attempt: Attempt,
  result: CallResult<RunView>,
  now: number,
  intervalMs: number,
): AfterLook {
  const late = attempt.deadlineAt !== null && now >= attempt.deadlineAt;
  if (result.ok) {
    const sighting = sight(attempt, result.value, now);
    if (result.value.final) return { do: 'read', sighting };
    if (late) return { do: 'abort', reason: 'deadline', sighting };
    return { do: 'wait', until: nextPollAt({ ...attempt, pollFailures: 0 }, now, intervalMs), sighting };
  }
  const { failure } = result;
  if (failure.notFound) return doubt(attempt, now) ?? lost(attempt, now);
  if (late) return { do: 'abort', reason: 'deadline', sighting: null };
  const until = nextPollAt({ ...attempt, pollFailures: attempt.pollFailures + 1 }, now, intervalMs);
  return held(failure, until) ?? { do: 'wait', until, sighting: null };
}

/** What an abort's answer, or a look at a run that is being aborted, means. */
export function afterAbort(
  attempt: Attempt,
  spec: RunSpec,
  result: CallResult<RunView>,
  now: number,
): AfterLook {
  const until = nextAbortAt(now, attempt.abortTries + 1);
  if (result.ok) {
    const sighting = sight(attempt, result.value, now);
    if (!result.value.final) return giveUp(attempt, now) ?? { do: 'wait', until, sighting };
    if (attempt.cancelledAt === null) return { do: 'read', sighting };
    const seen = { ...attempt, status: sighting.status, usageUsd: sighting.usageUsd };
    return { do: 'settle', sighting, decision: decideFinished(seen, spec, now, null) };
  }
  const { failure } = result;
  if (failure.notFound) return doubt(attempt, now) ?? lost(attempt, now);
  return giveUp(attempt, now) ?? held(failure, until) ?? { do: 'wait', until, sighting: null };
}

function held(failure: CallFailure, until: number): AfterLook | null {
  if (failure.refusal !== 'server' && failure.refusal !== 'not_now') return null;
  const reason = failure.holdReason ?? 'unreachable';
  const { message, retryAfterMs } = failure;
  return { do: 'hold', until: until + (retryAfterMs ?? 0), reason, message, retryAfterMs };
}

function doubt(attempt: Attempt, now: number): AfterLook | null {
  const since = attempt.unknownSince ?? now;
  if (attempt.unknownTimes + 1 >= 3 && now - since >= lostAfterMs) return null;
  return { do: 'doubt', until: now + lostAfterMs / 4 };
}

function lost(attempt: Attempt, now: number): AfterLook {
  const since = duration(now - (attempt.unknownSince ?? now));
  const message = `The server has said for ${since} that it does not know run ${attempt.runId}.`;
  return { do: 'settle', sighting: null, decision: decide('lost', message, now, attempt.warnings) };
}

function giveUp(attempt: Attempt, now: number): AfterLook | null {
  if (attempt.deadlineAt === null || now - attempt.deadlineAt < abortPatienceMs) return null;
  const outcome = attempt.cancelledAt === null ? 'deadline_exceeded' : 'cancelled';
  const message = `The run was aborted ${attempt.abortTries} times over ${duration(abortPatienceMs)} and the server never confirmed its end; look at run ${attempt.runId} there.`;
  return { do: 'settle', sighting: null, decision: decide(outcome, message, now, attempt.warnings) };
}

function sight(attempt: Attempt, run: RunView, now: number): Sighting {
  return {
    status: run.status,
    statusMessage: run.statusMessage ?? attempt.statusMessage,
    datasetId: run.datasetId ?? attempt.datasetId,
    storeId: run.storeId ?? attempt.storeId,
    // A count never shrinks: a smaller one is lag, and the verified end has to reach the larger.
    itemCount: largest(run.itemCount, attempt.itemCount),
    usageUsd: run.usageUsd ?? attempt.usageUsd,
    endedAt: run.final ? (attempt.endedAt ?? runEnd(attempt, run.finishedAtMs, now)) : null,
    elsewhere: elsewhere(run),
  };
}

function largest(a: number | null, b: number | null): number | null {
  if (a === null) return b;
  return b === null ? a : Math.max(a, b);
}

/** Places beside the default dataset that hold something: named when a run turns out empty (design A4). */
function elsewhere(run: RunView): string[] {
  const datasets = run.otherDatasets
    .filter((dataset) => dataset.itemCount > 0)
    .map((dataset) => `dataset ${dataset.name} (${dataset.id}) with ${count(dataset.itemCount, 'item')}`);
  const records = run.recordKeys.slice(0, 8).map((key) => `record ${plain(key)}`);
  return [...datasets, ...records].slice(0, 8);
}
