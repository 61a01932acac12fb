import type { Attempt } from './attempt.js';

const second = 1_000;
const minute = 60 * second;

/** A verified end needs a read made this long after the run's end (design A4: item counts lag up to 5 s). */
export const settleDelayMs = 5 * second;
/** How long after a run's end a dataset that stays behind the run's own item count is read again. */
export const readPatienceMs = 10 * minute;
/** "I do not know this run" has to be repeated for this long before the run counts as lost (design A4). */
export const lostAfterMs = minute;
/** Longest time an abort is repeated when the server never confirms a final status. */
export const abortPatienceMs = 24 * 60 * minute;

/** Doubles from `base` with every failure in a row, up to `max`. `failures` ≥ 1. */
export function backoff(base: number, failures: number, max: number): number {
  return Math.min(max, base * 2 ** Math.min(failures - 1, 30));
}

/** When to poll next: after the interval, but not after the deadline; sooner while calls fail. */
export function nextPollAt(attempt: Attempt, now: number, intervalMs: number): number {
  const wait =
    attempt.pollFailures > 0
      ? backoff(Math.min(2 * second, intervalMs), attempt.pollFailures, intervalMs)
      : intervalMs;
  const at = now + wait;
  return attempt.deadlineAt !== null && attempt.deadlineAt > now ? Math.min(at, attempt.deadlineAt) : at;
}

/** When to call abort, or look again, after `tries` calls without a final status. */
export function nextAbortAt(now: number, tries: number): number {
  return now + backoff(second, Math.max(1, tries), 30 * second);
}

/** When to read a slice again that came short. */
export function nextReadAt(now: number, reads: number): number {
  return now + backoff(2 * second, Math.max(1, reads), 30 * second);
}

/** Wait before the next attempt of a scrape. */
export function retryDelay(attempt: number, baseMs: number): number {
  return backoff(baseMs, attempt, 15 * minute);
}

/**
 * The run's end by our clock, never earlier than it was. The server's clock may be off, so its `finishedAt` is only
 * used as a distance from its own `startedAt`, laid onto the moment the start's answer reached us.
 */
export function runEnd(attempt: Attempt, serverFinishedAt: number | null, now: number): number {
  if (serverFinishedAt === null || attempt.serverStartedAt === null || attempt.repliedAt === null) return now;
  const duration = serverFinishedAt - attempt.serverStartedAt;
  return duration < 0 ? now : Math.min(now, attempt.repliedAt + duration);
}

/** First guess at a page's length, before anything is known of the items: about 4 KB each. */
const firstLimit = 128;
const largestLimit = 5_000;

/** Items to ask for so that a page comes out at about `pageBytes`, from the size of those read before. */
export function pageLimit(attempt: Pick<Attempt, 'items' | 'bytes'>, pageBytes: number): number {
  if (attempt.items === 0) return firstLimit;
  const average = attempt.bytes / attempt.items;
  return Math.max(1, Math.min(largestLimit, Math.floor((pageBytes * 0.9) / Math.max(1, average))));
}

/** How many of `lines` fit into `pageBytes`; a one-item page always passes (issue: "a one-item page always passes"). */
export function fittingCount(lines: readonly string[], pageBytes: number): number {
  let bytes = 0;
  for (const [index, line] of lines.entries()) {
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > pageBytes) return Math.max(1, index);
  }
  return lines.length;
}
