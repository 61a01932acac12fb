import type { Attempt } from '../run/attempt.js';
import { keptLooks, readLooks } from '../run/looks.js';
import type { OutcomeDocument } from '../scrape/types.js';
import type { PageEntry } from '../sinks/page-reader.js';

/** One thing that happened to a scrape. `at`: milliseconds since 1970. */
export type Happening =
  | { readonly at: number; readonly what: 'submitted' | 'started' | 'ended' | 'cancelled' | 'settled' }
  | { readonly at: number; readonly what: 'look'; readonly status: string; readonly items: number | null }
  | { readonly at: number; readonly what: 'page'; readonly page: number; readonly bytes: number };

export interface Timeline {
  /** Oldest first. */
  readonly happenings: readonly Happening[];
  /** Looks that were made before the oldest one that is kept. */
  readonly earlierLooks: number;
}

/**
 * What is known of how a scrape went, of its present attempt: from its hash or its outcome document, the looks that were
 * kept, and the times of its page files. Bounded by the looks kept and the pages handed in.
 */
export function timelineOf(
  scrape: { readonly attempt: Attempt | null; readonly outcome: OutcomeDocument | null },
  looksText: string | null,
  pages: readonly PageEntry[],
): Timeline {
  const { attempt, outcome } = scrape;
  const happenings: Happening[] = [];
  const add = (what: 'submitted' | 'started' | 'ended' | 'cancelled' | 'settled', at: number | null) => {
    if (at !== null && Number.isFinite(at) && at > 0) happenings.push({ at, what });
  };
  const time = (text: string | null) => (text === null ? null : Date.parse(text));
  if (outcome === null) {
    add('submitted', attempt?.submittedAt ?? null);
    add('started', attempt?.startedAt ?? null);
    add('cancelled', attempt?.cancelledAt ?? null);
    add('ended', attempt?.endedAt ?? null);
  } else {
    add('submitted', time(outcome.submittedAt));
    add('started', time(outcome.startedAt));
  }
  const looks = readLooks(looksText);
  for (const { at, status, items } of looks) happenings.push({ at, what: 'look', status, items });
  for (const { index, bytes, writtenAt } of pages) {
    happenings.push({ at: Math.round(writtenAt), what: 'page', page: index, bytes });
  }
  add('settled', time(outcome?.finishedAt ?? null));
  const polls = outcome?.polls ?? attempt?.polls ?? 0;
  return {
    happenings: happenings
      .map((each, index) => ({ each, index }))
      .sort(byTime)
      .map(({ each }) => each),
    earlierLooks: looks.length < keptLooks ? 0 : Math.max(0, polls - looks.length),
  };
}

/** Looks are kept to the second: what happened in the same one stays in the order of a life. */
function byTime(a: { each: Happening; index: number }, b: { each: Happening; index: number }): number {
  const seconds = Math.floor(a.each.at / 1000) - Math.floor(b.each.at / 1000);
  return seconds !== 0 ? seconds : a.index - b.index;
}
