import type { CallFailure, CallResult, HoldReason, PageView } from '../mcp/port.js';
import type { Attempt, Decision, RunSpec, Slice } from './attempt.js';
import { decide, decideFinished } from './outcome.js';
import { fittingCount, nextReadAt, pageLimit, readPatienceMs, settleDelayMs } from './schedule.js';

export type NextRead =
  | { readonly do: 'wait'; readonly until: number }
  | { readonly do: 'read'; readonly slice: Slice }
  | { readonly do: 'finish'; readonly decision: Decision };

/** When reads begin to be able to prove the end of the dataset (design A4, verified end). */
export function verifiableFrom(attempt: Attempt): number {
  return (attempt.endedAt ?? 0) + settleDelayMs;
}

/** The first slice, or the one that was planned and not yet checkpointed. */
export function nextSlice(
  attempt: Pick<Attempt, 'slice' | 'items' | 'bytes' | 'itemCount'>,
  pageBytes: number,
): Slice {
  return attempt.slice ?? { index: 0, offset: 0, limit: sliceLimit(attempt, 0, pageBytes) };
}

/** A slice that ends where the run's own count does comes back full, and needs no second plan. */
function sliceLimit(
  attempt: Pick<Attempt, 'items' | 'bytes' | 'itemCount'>,
  offset: number,
  pageBytes: number,
): number {
  const limit = pageLimit(attempt, pageBytes);
  const remaining = (attempt.itemCount ?? 0) - offset;
  return remaining > 0 ? Math.min(limit, remaining) : limit;
}

/**
 * Whether to read now. A slice that cannot be full yet is left until its read can prove the end as well: one call
 * less, and the same result.
 */
export function beforeRead(attempt: Attempt, spec: RunSpec, pageBytes: number, now: number): NextRead {
  if (attempt.cancelledAt !== null) {
    return { do: 'finish', decision: decideFinished(attempt, spec, now, null) };
  }
  if (attempt.datasetId === null) return { do: 'finish', decision: withoutDataset(attempt, spec, now) };
  const slice = nextSlice(attempt, pageBytes);
  const remaining = (attempt.itemCount ?? 0) - slice.offset;
  const from = verifiableFrom(attempt);
  if (now < from && remaining <= slice.limit) return { do: 'wait', until: from };
  return { do: 'read', slice };
}

/** Without a dataset nothing can be verified, so such a run is never called empty. */
function withoutDataset(attempt: Attempt, spec: RunSpec, now: number): Decision {
  if (attempt.status !== 'SUCCEEDED') return decideFinished(attempt, spec, now, null);
  const message = `The run SUCCEEDED but the server named no dataset of it, so nothing could be read; look at run ${attempt.runId} there.`;
  return decide('failed', message, now, attempt.warnings);
}

export type AfterRead =
  /** Write exactly these lines as the slice's page. `replan`: save the slice first, it is shorter than the planned one. */
  | {
      readonly do: 'write';
      readonly slice: Slice;
      readonly lines: readonly string[];
      readonly replan: boolean;
      readonly end: boolean;
    }
  /** The same offset with fewer items: the answer was too large. */
  | { readonly do: 'shrink'; readonly slice: Slice }
  | { readonly do: 'end'; readonly shortOf: number | null }
  | { readonly do: 'wait'; readonly until: number }
  | {
      readonly do: 'hold';
      readonly until: number;
      readonly reason: HoldReason;
      readonly message: string;
      readonly retryAfterMs: number | null;
    }
  | { readonly do: 'give_up'; readonly message: string };

/**
 * What a read means. A page is written only when its slice is full or the end is verified; a short slice before that
 * is read again, so that page contents depend on the slice alone, whoever writes them and however often.
 *
 * @param requestedAt when the read was sent: only a read *made* 5 s after the run's end can prove the end
 */
export function afterRead(
  attempt: Attempt,
  slice: Slice,
  result: CallResult<PageView>,
  requestedAt: number,
  pageBytes: number,
): AfterRead {
  if (!result.ok) return afterFailedRead(attempt, slice, result.failure, requestedAt);
  const { lines, totalItemCount } = result.value;
  const reached = slice.offset + lines.length;
  // The larger of the read's total and the run's own count; a read without a total proves nothing.
  const promised = Math.max(totalItemCount ?? 0, attempt.itemCount ?? 0);
  const verified = requestedAt >= verifiableFrom(attempt) && totalItemCount !== null && reached >= promised;
  const fitting = fittingCount(lines, pageBytes);
  if (fitting < lines.length) {
    const shorter = { ...slice, limit: fitting };
    return { do: 'write', slice: shorter, lines: lines.slice(0, fitting), replan: true, end: false };
  }
  if (lines.length === slice.limit) return { do: 'write', slice, lines, replan: false, end: verified };
  const patient = requestedAt - (attempt.endedAt ?? requestedAt) < readPatienceMs;
  if (!verified && patient) return { do: 'wait', until: nextReadAt(requestedAt, attempt.reads + 1) };
  if (lines.length === 0) return { do: 'end', shortOf: reached < promised ? promised : null };
  // Short and final: pin the slice to what is there, so that a replay writes the same page.
  return { do: 'write', slice: { ...slice, limit: lines.length }, lines, replan: true, end: verified };
}

function afterFailedRead(attempt: Attempt, slice: Slice, failure: CallFailure, now: number): AfterRead {
  const until = nextReadAt(now, attempt.reads + 1);
  const { message, retryAfterMs } = failure;
  if (failure.refusal === 'server' || failure.refusal === 'not_now') {
    const reason = failure.holdReason ?? 'unreachable';
    return { do: 'hold', until: until + (retryAfterMs ?? 0), reason, message, retryAfterMs };
  }
  // A page larger than the bound on answers, or than the connection survives: ask for less.
  if (failure.tooLarge === true && slice.limit > 1) {
    return { do: 'shrink', slice: { ...slice, limit: Math.max(1, Math.floor(slice.limit / 4)) } };
  }
  const patient = now - (attempt.endedAt ?? now) < readPatienceMs;
  return patient || isOnTheWay(failure) ? { do: 'wait', until } : { do: 'give_up', message };
}

/** The server, or the way to it, failed: that says nothing of what was asked for. */
export function isOnTheWay(failure: CallFailure): boolean {
  switch (failure.kind) {
    case 'network_error':
    case 'session_lost':
    case 'timeout':
      return true;
    case 'http_error':
      return (failure.httpStatus ?? 500) >= 500;
    case 'tool_error':
    case 'invalid_input':
    case 'protocol_error':
    case 'rate_limited':
    case 'capacity':
    case 'invalid_response':
      return false;
    default:
      return failure.kind satisfies never;
  }
}

/** The slice after one that is written. */
export function sliceAfter(
  attempt: Pick<Attempt, 'items' | 'bytes' | 'itemCount'>,
  slice: Slice,
  pageBytes: number,
): Slice {
  const offset = slice.offset + slice.limit;
  return { index: slice.index + 1, offset, limit: sliceLimit(attempt, offset, pageBytes) };
}

/**
 * The attempt once a page is durable. `durableLines` is what the page of that index holds: another worker's page stays as
 * it is, and holds more or fewer items than ours when its answer was another one, or its `pageBytes`. The next slice
 * begins where that page ends, so that no item is skipped or written twice.
 */
export function afterWrite(
  attempt: Pick<Attempt, 'pages' | 'items' | 'bytes' | 'itemCount'>,
  written: { readonly slice: Slice; readonly lines: readonly string[]; readonly end: boolean },
  durableLines: number,
  pageBytes: number,
): {
  readonly pages: number;
  readonly items: number;
  readonly bytes: number;
  readonly slice: Slice;
  readonly end: boolean;
} {
  const read = written.lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
  const counted = {
    pages: attempt.pages + 1,
    items: attempt.items + durableLines,
    bytes: attempt.bytes + read,
  };
  const durable = { ...written.slice, limit: durableLines };
  return {
    ...counted,
    slice: sliceAfter({ ...counted, itemCount: attempt.itemCount }, durable, pageBytes),
    end: written.end && durableLines === written.lines.length,
  };
}
