import type { Attempt, Decision } from './attempt.js';
import { decide } from './outcome.js';
import { duration } from './phrase.js';
import { backoff } from './schedule.js';

/** What a look through the server's list of runs for the run of a lost answer brought. */
export type Search =
  | { readonly found: string }
  /** The list covered the whole window since the intent, and the run is not in it. */
  | {
      readonly found: null;
      readonly covered: boolean /** When its reading began. */;
      readonly readAt: number;
    };

export type AfterSearch =
  | { readonly do: 'adopt'; readonly runId: string }
  | { readonly do: 'wait'; readonly until: number }
  /** Certainly no run: the attempt may start again. */
  | { readonly do: 'start_again' }
  | { readonly do: 'settle'; readonly decision: Decision };

/** A search that could not be made even once in this long ends all the same. */
const searchPatienceMs = 24 * 3_600_000;

/**
 * Design B4: found → adopt; certainly not there (a list that covers the window, read at least 5 minutes after the
 * intent) → start again; else nothing is ever started again.
 *
 * @param canList false when the server has no list of runs: then nothing can be found out
 */
export function afterSearch(
  attempt: Attempt,
  search: Search | null,
  canList: boolean,
  now: number,
  patience: { readonly certainAfterMs: number; readonly unknownAfterMs: number },
): AfterSearch {
  const since = now - (attempt.intentAt ?? now);
  if (search !== null && search.found !== null) return { do: 'adopt', runId: search.found };
  // Nothing could be read: the server is held or away, and that time does not count against the scrape.
  if (canList && search === null && since < searchPatienceMs) return { do: 'wait', until: now + 10_000 };
  if (!canList)
    return { do: 'settle', decision: unknown('The server offers no list of runs to look it up in.', now) };
  const readAfter = search === null ? 0 : search.readAt - (attempt.intentAt ?? now);
  if (search?.covered && readAfter >= patience.certainAfterMs) {
    if (attempt.cancelledAt === null) return { do: 'start_again' };
    return {
      do: 'settle',
      decision: decide('cancelled', 'Cancelled; the start under way had no effect.', now),
    };
  }
  if (since >= patience.unknownAfterMs) {
    return { do: 'settle', decision: unknown(`It could not be found out in ${duration(since)}.`, now) };
  }
  const pause = backoff(2_000, Math.floor(since / 10_000) + 1, 30_000);
  const certain = (attempt.intentAt ?? now) + patience.certainAfterMs;
  return {
    do: 'wait',
    until: now < certain ? Math.min(now + pause, Math.max(now + 1_000, certain)) : now + pause,
  };
}

function unknown(why: string, now: number): Decision {
  const message = `The answer to the start call was lost, so a run may exist; nothing was started again. ${why} Look at the runs on the server before you retry.`;
  return decide('start_unknown', message, now);
}

/** Whether two INPUT records are the same, as those of two runs of one call are. */
export function equalInput(a: unknown, b: unknown): boolean {
  return sameInput(a, b) && sameInput(b, a);
}

/**
 * Whether a run's INPUT record is what a scrape asked for. Servers fill in defaults and coerce types (apify-contract), so
 * what we asked for has to be in there, and scalars are compared as text.
 */
export function sameInput(asked: unknown, record: unknown): boolean {
  if (Array.isArray(asked)) {
    if (!Array.isArray(record)) return asked.length === 1 && sameInput(asked[0], record);
    return asked.length === record.length && asked.every((value, index) => sameInput(value, record[index]));
  }
  if (typeof asked === 'object' && asked !== null) {
    if (typeof record !== 'object' || record === null || Array.isArray(record)) return false;
    const held = record as Record<string, unknown>;
    return Object.entries(asked).every(
      ([key, value]) => Object.hasOwn(held, key) && sameInput(value, held[key]),
    );
  }
  if (typeof record === 'object' && record !== null) return false;
  return asked === record || String(asked) === String(record);
}
