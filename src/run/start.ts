import type { CallFailure, HoldReason, RunView, StartResult } from '../mcp/port.js';
import type { Attempt, Decision } from './attempt.js';
import { cancelledMessage, decide } from './outcome.js';
import { duration } from './phrase.js';

/** What to do with a start job before anything is called. */
export type BeforeStart =
  | { readonly do: 'nothing'; readonly why: string }
  | { readonly do: 'settle'; readonly decision: Decision }
  | { readonly do: 'reconcile' }
  | { readonly do: 'hand_on' }
  | { readonly do: 'start' };

export function beforeStart(attempt: Attempt, now: number, expiresInMs: number | null): BeforeStart {
  switch (attempt.phase) {
    case 'queued':
    case 'starting':
      break;
    case 'running':
      return { do: 'hand_on' };
    case 'aborting':
    case 'reading':
    case 'decided':
    case 'done':
      return { do: 'nothing', why: `the attempt is ${attempt.phase}` };
    default:
      return attempt.phase satisfies never;
  }
  // An intent without an answer: the worker that made the call is gone, and a run may exist.
  if (attempt.intentAt !== null) return { do: 'reconcile' };
  if (attempt.cancelledAt !== null) {
    return { do: 'settle', decision: decide('cancelled', cancelledMessage(attempt), now) };
  }
  const waited = now - attempt.submittedAt;
  if (expiresInMs !== null && attempt.n === 1 && waited >= expiresInMs) {
    const message = `Expired: it waited ${duration(waited)} in the queue and expiresIn is ${duration(expiresInMs)}; nothing was spent.`;
    return { do: 'settle', decision: decide('expired', message, now) };
  }
  return { do: 'start' };
}

/** What a start's answer means. */
export type AfterStart =
  | { readonly do: 'run'; readonly run: RunView }
  | { readonly do: 'settle'; readonly decision: Decision; readonly unrecognised: boolean }
  /** Nothing was spent: the job goes back to where it was, and the server or tool is held. */
  | {
      readonly do: 'put_back';
      readonly hold: 'cool_down' | 'server' | 'tool' | 'none';
      readonly reason: HoldReason;
      readonly retryAfterMs: number | null;
      readonly message: string;
    }
  | { readonly do: 'reconcile'; readonly message: string };

/** Classes of refusal as design B5 has them; a fault without an answer is ambiguous unless it had no effect (B4). */
export function afterStart(result: StartResult, now: number): AfterStart {
  if (result.ok) return { do: 'run', run: result.value };
  const { failure } = result;
  switch (failure.refusal) {
    case 'not_now':
      return putBack(failure, 'cool_down', 'capacity');
    case 'server':
      return putBack(failure, 'server', 'unreachable');
    case 'tool':
      return putBack(failure, 'tool', 'tools_missing');
    case 'scrape':
      return {
        do: 'settle',
        decision: decide('rejected', `The server refused this scrape: ${failure.message}`, now),
        unrecognised: false,
      };
    case 'unknown':
      return {
        do: 'settle',
        decision: decide('rejected', `The server refused the start: ${failure.message}`, now),
        unrecognised: true,
      };
    case 'none':
      if (failure.noEffect) return putBack(failure, 'none', 'unreachable');
      return { do: 'reconcile', message: failure.message };
    default:
      return failure.refusal satisfies never;
  }
}

function putBack(
  failure: CallFailure,
  hold: 'cool_down' | 'server' | 'tool' | 'none',
  fallback: HoldReason,
): AfterStart {
  return {
    do: 'put_back',
    hold,
    reason: failure.holdReason ?? fallback,
    retryAfterMs: failure.retryAfterMs,
    message: failure.message,
  };
}
