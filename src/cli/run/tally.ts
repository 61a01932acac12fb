import { type OutcomeClass, outcomeClass } from '../../run/outcome.js';
import type { Outcome, OutcomeDocument, Scrape } from '../../scrape/types.js';

type OnEmpty = Scrape['onEmpty'];

/** What is counted of an outcome document. */
export type Settled = Pick<
  OutcomeDocument,
  'id' | 'batch' | 'outcome' | 'message' | 'items' | 'usageUsd' | 'runId' | 'warnings' | 'finishedAt'
>;

/** Warnings and failures that came about in the same way. A `note` goes with an outcome of any class. */
export interface Cause {
  readonly kind: Exclude<OutcomeClass, 'ok'> | 'note';
  /** An outcome; `removed` for a scrape that left the queue without one. */
  readonly outcome: Outcome | 'removed';
  /** The message; where the messages of a cause differ, `N` stands for their numbers. */
  message: string;
  /** `<batch>.<id>` of each. */
  readonly scrapes: string[];
}

const removedMessage = 'Its job was removed from the queue before it had an outcome.';

/**
 * Counts how the scrapes of one `run` end, each once, whether that is seen as an event, found in Redis or found on
 * disk, and in whatever order.
 */
export class Tally {
  /** Settled before this run began. */
  earlier = 0;
  items = 0;
  usageUsd = 0;
  /** Runs whose cost the server did not tell. */
  usageUnknown = 0;
  /** Milliseconds since 1970; of the last one that ended. */
  lastFinishedAt: number | null = null;
  readonly outcomes = new Map<Outcome | 'removed', number>();
  private readonly open = new Map<string, OnEmpty>();
  private readonly causes = new Map<string, Cause>();
  private settledCount = 0;
  private readonly classes: Record<OutcomeClass, number> = { ok: 0, warning: 0, failure: 0 };

  constructor(readonly total: number) {}

  /** Submitted, now or earlier, and not known to have ended. */
  expect(key: string, onEmpty: OnEmpty): void {
    this.open.set(key, onEmpty);
  }

  /** A scrape that had ended before. */
  found(key: string, document: Settled, onEmpty: OnEmpty): void {
    this.open.set(key, onEmpty);
    if (this.settle(key, document)) this.earlier += 1;
  }

  /** False when it is not one of ours or has been counted. */
  settle(key: string, document: Settled): boolean {
    const onEmpty = this.open.get(key);
    if (onEmpty === undefined) return false;
    this.open.delete(key);
    const verdict = outcomeClass(document.outcome, onEmpty);
    this.count(document.outcome, verdict);
    this.items += document.items;
    if (document.usageUsd !== null) this.usageUsd += document.usageUsd;
    else if (document.runId !== null) this.usageUnknown += 1;
    const finishedAt = Date.parse(document.finishedAt);
    if (finishedAt > (this.lastFinishedAt ?? 0)) this.lastFinishedAt = finishedAt;
    if (verdict !== 'ok') this.blame(verdict, document.outcome, document.message, key);
    for (const warning of document.warnings) this.blame('note', document.outcome, warning, key);
    return true;
  }

  /** A scrape whose job is gone and that left no outcome anywhere. */
  remove(key: string): void {
    if (!this.open.delete(key)) return;
    this.count('removed', 'failure');
    this.blame('failure', 'removed', removedMessage, key);
  }

  get settled(): number {
    return this.settledCount;
  }

  get openCount(): number {
    return this.open.size;
  }

  /** Keys of what is open, the earliest first. */
  openKeys(): IterableIterator<string> {
    return this.open.keys();
  }

  isOpen(key: string): boolean {
    return this.open.has(key);
  }

  ofClass(verdict: OutcomeClass): number {
    return this.classes[verdict];
  }

  /** Failures first, then the most frequent; scrapes by name. */
  byCause(): Cause[] {
    const rank = { failure: 0, warning: 1, note: 2 } as const;
    return [...this.causes.values()]
      .map((cause) => ({ ...cause, scrapes: cause.scrapes.toSorted() }))
      .sort((a, b) => rank[a.kind] - rank[b.kind] || b.scrapes.length - a.scrapes.length);
  }

  private count(outcome: Outcome | 'removed', verdict: OutcomeClass): void {
    this.settledCount += 1;
    this.classes[verdict] += 1;
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }

  private blame(kind: Cause['kind'], outcome: Cause['outcome'], message: string, key: string): void {
    const pattern = withoutNumbers(message);
    const name = `${kind} ${outcome} ${pattern}`;
    const cause = this.causes.get(name);
    if (cause === undefined) this.causes.set(name, { kind, outcome, message, scrapes: [key] });
    else {
      if (cause.message !== message) cause.message = pattern;
      cause.scrapes.push(key);
    }
  }
}

/** Messages that differ only in numbers (items, seconds, dollars) have one cause. */
function withoutNumbers(message: string): string {
  return message.replace(/\d+(?:[.,]\d+)*/g, 'N');
}
