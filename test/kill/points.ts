import type { OutcomeDocument } from '../../src/scrape/types.js';

/** A moment in the life of a scrape: before or after the n-th call of an operation. */
export interface Moment {
  /** `port.<call>`, `store.saveRun`, `advance:<phase>` (`stay`: none), `add:<stage>`, `sink.<call>`, `publish`. */
  readonly operation: string;
  readonly when: 'before' | 'after';
  /** Default 1. */
  readonly nth?: number;
}

/** A boundary of the lifecycle at which the process is killed. */
export interface KillPoint {
  readonly name: string;
  readonly first: Moment;
  /** Where the second process is killed, when the first one's end leads elsewhere; default: at the same moment. */
  readonly second?: Moment;
  readonly job: Readonly<Record<string, unknown>>;
  readonly expected: Partial<OutcomeDocument>;
}

const ordinary = { sim: { runSecs: 0.3, items: 5, itemBytes: 300, usageUsd: 0.01 } };
/** Several pages at the small page size of these tests. */
const paged = { sim: { runSecs: 0.3, items: 30, itemBytes: 500, usageUsd: 0.01 } };
const overdue = { sim: { runSecs: 600, items: 4_000, itemBytes: 300, usageUsd: 6 } };

const succeeded = (items: number) => ({ outcome: 'succeeded' as const, items, attempt: 1 });

export const killPoints: readonly KillPoint[] = [
  {
    name: 'before the start',
    first: { operation: 'port.start', when: 'before' },
    job: { input: ordinary },
    expected: succeeded(5),
  },
  {
    name: 'after the start, before its run is saved',
    first: { operation: 'port.start', when: 'after' },
    second: { operation: 'store.saveRun', when: 'before' },
    job: { input: ordinary },
    expected: succeeded(5),
  },
  {
    name: 'after the save, before the hand-on',
    first: { operation: 'store.saveRun', when: 'after' },
    second: { operation: 'add:poll', when: 'before' },
    job: { input: ordinary },
    expected: succeeded(5),
  },
  {
    name: 'after the hand-on',
    first: { operation: 'add:poll', when: 'after' },
    // The poll job is there and goes on by itself.
    second: { operation: 'port.poll', when: 'after' },
    job: { input: ordinary },
    expected: succeeded(5),
  },
  {
    name: 'in a poll',
    first: { operation: 'port.poll', when: 'after' },
    job: { input: ordinary },
    expected: succeeded(5),
  },
  {
    name: 'before the snooze',
    first: { operation: 'advance:stay', when: 'after' },
    // Still under way at the first look.
    job: { input: { sim: { ...ordinary.sim, runSecs: 8 } } },
    expected: succeeded(5),
  },
  {
    name: 'in the read of a page',
    first: { operation: 'port.readPage', when: 'after', nth: 2 },
    job: { input: paged },
    expected: succeeded(30),
  },
  {
    name: 'between a page and its checkpoint',
    first: { operation: 'sink.writePage', when: 'after', nth: 2 },
    job: { input: paged },
    expected: succeeded(30),
  },
  {
    name: 'after the last page',
    first: { operation: 'advance:decided', when: 'before' },
    job: { input: paged },
    expected: succeeded(30),
  },
  {
    name: 'before parking',
    first: { operation: 'add:start', when: 'after' },
    // The start job goes on by itself.
    second: { operation: 'add:poll', when: 'after' },
    job: { input: ordinary },
    expected: succeeded(5),
  },
  {
    name: 'in the settling, with outcome.json there',
    first: { operation: 'sink.settle', when: 'after' },
    job: { input: ordinary },
    expected: succeeded(5),
  },
  {
    name: 'in the settling, with the event told',
    first: { operation: 'publish', when: 'after' },
    // It is found published, and only the public job has to end.
    second: { operation: 'sink.find', when: 'after' },
    job: { input: ordinary },
    expected: succeeded(5),
  },
  {
    name: 'in an abort',
    first: { operation: 'port.abort', when: 'after' },
    job: { input: overdue, deadline: 2 },
    expected: { outcome: 'deadline_exceeded', attempt: 1, runStatus: 'ABORTED' },
  },
];
