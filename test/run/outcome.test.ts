import { describe, expect, it } from 'vitest';
import type { Attempt, RunSpec } from '../../src/run/attempt.js';
import {
  cancelledMessage,
  decide,
  decideFinished,
  outcomeClass,
  outcomeDocument,
  shouldRetry,
  totalUsage,
} from '../../src/run/outcome.js';
import { type Outcome, outcomes } from '../../src/scrape/types.js';
import { attempt, reading, spec, t0 } from './attempts.js';

const now = t0 + 90_000;

interface Case {
  readonly name: string;
  readonly seen?: Partial<Attempt>;
  readonly asked?: Partial<RunSpec>;
  readonly shortOf?: number;
  readonly outcome: Outcome;
  readonly message: string;
}

/** The table of design A4, as far as a finished run leads to an outcome. */
const cases: Case[] = [
  { name: 'items', seen: { items: 412, pages: 3 }, outcome: 'succeeded', message: '412 items in 3 pages.' },
  { name: 'one item', seen: { items: 1, pages: 1 }, outcome: 'succeeded', message: '1 item in 1 page.' },
  {
    name: 'nothing, which is normal',
    asked: { minItems: 0 },
    outcome: 'succeeded',
    message: 'The run SUCCEEDED with no items, which minItems 0 calls a normal answer.',
  },
  { name: 'nothing', outcome: 'empty', message: 'The run SUCCEEDED but its dataset holds no items.' },
  {
    name: 'nothing where it was looked for',
    seen: { elsewhere: ['dataset reviews (ds2) with 7 items', 'record OUTPUT'], statusMessage: 'Done.' },
    outcome: 'empty',
    message:
      'The run SUCCEEDED but its dataset holds no items. Not empty: dataset reviews (ds2) with 7 items, record OUTPUT. It said: "Done".',
  },
  {
    name: 'nothing, for all the money',
    seen: { usageUsd: 2 },
    asked: { maxTotalChargeUsd: 2 },
    outcome: 'empty',
    message: 'The run SUCCEEDED but its dataset holds no items.',
  },
  {
    name: 'fewer than expected',
    seen: { items: 2, pages: 1 },
    asked: { minItems: 5 },
    outcome: 'low_count',
    message: 'The run SUCCEEDED with 2 items, fewer than the 5 expected.',
  },
  {
    name: 'as many as expected',
    seen: { items: 5, pages: 1 },
    asked: { minItems: 5 },
    outcome: 'succeeded',
    message: '5 items in 1 page.',
  },
  {
    name: 'the money was spent',
    seen: { items: 9, pages: 1, usageUsd: 1.96 },
    asked: { maxTotalChargeUsd: 2 },
    outcome: 'capped',
    message:
      'The run ended at its own limit: $1.96 of maxTotalChargeUsd $2.00 were spent; its 9 items were kept.',
  },
  {
    name: 'less than 98 % of the money was spent',
    seen: { items: 9, pages: 1, usageUsd: 1.959 },
    asked: { maxTotalChargeUsd: 2 },
    outcome: 'succeeded',
    message: '9 items in 1 page.',
  },
  {
    name: 'aborted by the server at the money',
    seen: { status: 'ABORTED', items: 9, pages: 1, usageUsd: 2 },
    asked: { maxTotalChargeUsd: 2 },
    outcome: 'capped',
    message:
      'The run ended ABORTED after 1m at its own limit: $2.00 of maxTotalChargeUsd $2.00 were spent; its 9 items were kept.',
  },
  {
    name: 'aborted by the server at the number of items',
    seen: { status: 'ABORTED', items: 10, pages: 1 },
    asked: { maxItems: 10 },
    outcome: 'capped',
    message:
      'The run ended ABORTED after 1m at its own limit: maxItems 10 was reached; its 10 items were kept.',
  },
  {
    name: 'SUCCEEDED by itself with that number of items',
    seen: { items: 10, pages: 1 },
    asked: { maxItems: 10 },
    outcome: 'succeeded',
    message: '10 items in 1 page.',
  },
  {
    name: 'FAILED with items and a reason',
    seen: { status: 'FAILED', items: 1, pages: 1, statusMessage: 'Blocked.' },
    outcome: 'failed',
    message: 'The run ended FAILED after 1m; its 1 item was kept. It said: "Blocked".',
  },
  {
    name: 'TIMED-OUT, though it was to be aborted',
    seen: { status: 'TIMED-OUT', abort: 'deadline' },
    outcome: 'failed',
    message: 'The run ended TIMED-OUT after 1m; it had no items.',
  },
  {
    name: 'ABORTED by somebody on the server',
    seen: { status: 'ABORTED' },
    outcome: 'failed',
    message: 'The run ended ABORTED after 1m; it had no items.',
  },
  {
    name: 'an end whose time is not known',
    seen: { status: 'FAILED', endedAt: null },
    outcome: 'failed',
    message: 'The run ended FAILED; it had no items.',
  },
  {
    name: 'aborted by us at the deadline, with items',
    seen: { status: 'ABORTED', abort: 'deadline', items: 412, pages: 4 },
    outcome: 'deadline_exceeded',
    message: 'Aborted after 30m: the run was still under way with 412 items; they were kept.',
  },
  {
    name: 'aborted by us at the deadline, without',
    seen: { status: 'ABORTED', abort: 'deadline' },
    outcome: 'deadline_exceeded',
    message: 'Aborted after 30m: the run was still under way with 0 items; nothing was lost.',
  },
  {
    name: 'found SUCCEEDED by the abort at the deadline',
    seen: { abort: 'deadline', items: 3, pages: 1 },
    outcome: 'succeeded',
    message: '3 items in 1 page.',
  },
  {
    name: 'a dataset that stays behind the count',
    seen: { items: 30, pages: 1 },
    shortOf: 50,
    outcome: 'failed',
    message: 'The run SUCCEEDED with 50 items by its own count, but only 30 could be read; they were kept.',
  },
  {
    name: 'cancelled',
    seen: { cancelledAt: t0, status: 'ABORTED', items: 1, pages: 1, usageUsd: 0.25 },
    outcome: 'cancelled',
    message: 'Cancelled: the run is ABORTED; 1 item had been written and stay. $0.25 had been spent.',
  },
  {
    name: 'cancelled while it was read',
    seen: { cancelledAt: t0, items: 30, pages: 1 },
    outcome: 'cancelled',
    message: 'Cancelled: the run is SUCCEEDED; 30 items had been written and stay.',
  },
];

describe('decideFinished', () => {
  it.each(cases)('$name → $outcome', ({ seen, asked, shortOf, outcome, message }) => {
    const warnings = ['Record LOG does not exist.'];
    const read = reading({ warnings, ...seen });
    expect(decideFinished(read, spec(asked), now, shortOf ?? null)).toEqual({
      outcome,
      message,
      warnings,
      finishedAt: now,
    });
  });

  it('a cancel in the queue cost nothing', () => {
    expect(cancelledMessage(attempt())).toBe('Cancelled before a run was started; nothing was spent.');
    expect(cancelledMessage(attempt({ runId: 'run1' }))).toBe(
      'Cancelled: the run is ended; 0 items had been written and stay.',
    );
  });
});

describe('outcomeClass', () => {
  const classes: Record<Outcome, string> = {
    succeeded: 'ok',
    empty: 'warning',
    low_count: 'warning',
    capped: 'warning',
    failed: 'failure',
    deadline_exceeded: 'failure',
    cancelled: 'failure',
    expired: 'failure',
    rejected: 'failure',
    start_unknown: 'failure',
    lost: 'failure',
    errored: 'failure',
  };
  it.each(outcomes)('%s', (outcome) => {
    expect(outcomeClass(outcome)).toBe(classes[outcome]);
    const strict = outcome === 'empty' ? 'failure' : classes[outcome];
    expect(outcomeClass(outcome, 'fail')).toBe(strict);
    expect(outcomeClass(outcome, 'retry')).toBe(classes[outcome]);
  });
});

describe('shouldRetry', () => {
  const always = new Set<Outcome>(['failed', 'deadline_exceeded']);
  it.each(outcomes)('%s', (outcome) => {
    const decision = decide(outcome, 'x', now);
    const asks = (onEmpty: RunSpec['onEmpty'], over: Partial<Attempt> = {}, retries = 2) =>
      shouldRetry(attempt({ n: 2, ...over }), { retries, onEmpty }, decision);
    expect(asks('warn')).toBe(always.has(outcome));
    expect(asks('fail')).toBe(always.has(outcome));
    expect(asks('retry')).toBe(always.has(outcome) || outcome === 'empty');
    expect(asks('retry', { n: 3 })).toBe(false);
    expect(asks('retry', { n: 1 }, 0)).toBe(false);
    expect(asks('retry', { cancelledAt: t0 })).toBe(false);
  });
});

describe('outcomeDocument', () => {
  const subject = { id: 'a', batch: 'default', server: 'apify', tool: 'acme/pages', meta: { row: 1 } };

  it('says everything once', () => {
    const read = reading({ items: 3, pages: 1, bytes: 6, polls: 4, usageUsd: 0.5, usageBefore: 0.25, n: 2 });
    const decision = decide('succeeded', '3 items in 1 page.', now, ['w']);
    const document = outcomeDocument(read, subject, decision, '/results/a');
    expect(document).toEqual({
      id: 'a',
      batch: 'default',
      server: 'apify',
      tool: 'acme/pages',
      outcome: 'succeeded',
      message: '3 items in 1 page.',
      runId: 'run1',
      datasetId: 'ds1',
      runStatus: 'SUCCEEDED',
      statusMessage: null,
      items: 3,
      pages: 1,
      bytes: 6,
      usageUsd: 0.75,
      attempt: 2,
      polls: 4,
      submittedAt: '2026-12-01T12:00:00.000Z',
      startedAt: '2026-12-01T12:00:00.000Z',
      finishedAt: '2026-12-01T12:01:30.000Z',
      durationSeconds: 90,
      destination: '/results/a',
      warnings: ['w'],
      meta: { row: 1 },
    });
    expect(outcomeDocument(read, subject, decision, '/results/a')).toEqual(document);
  });

  it('names no place where nothing was written', () => {
    const { destination, startedAt, durationSeconds } = outcomeDocument(
      attempt(),
      subject,
      decide('expired', 'x', now),
      '/results/a',
    );
    expect({ destination, startedAt, durationSeconds }).toEqual({
      destination: null,
      startedAt: null,
      durationSeconds: 90,
    });
    const record = outcomeDocument(attempt({ recordsDone: 1 }), subject, decide('empty', 'x', now), '/r');
    expect(record.destination).toBe('/r');
  });

  it.each([1e300, -1e300, Number.NaN, Number.POSITIVE_INFINITY, 8.64e15 + 1, 0.5, -1])(
    'no time a producer can choose keeps it from being written: %d',
    (submittedAt) => {
      const document = outcomeDocument(
        attempt({ submittedAt }),
        { ...subject, meta: undefined },
        decide('rejected', 'x', now),
        null,
      );
      expect(Date.parse(document.submittedAt)).not.toBeNaN();
      expect(Number.isFinite(document.durationSeconds)).toBe(true);
      expect(document.meta).toBeNull();
    },
  );
});

it.each([
  [null, null, null],
  [0.5, null, 0.5],
  [null, 0.25, 0.25],
  [0.5, 0.25, 0.75],
])('usage %s after %s is %s', (usageUsd, usageBefore, total) => {
  expect(totalUsage({ usageUsd, usageBefore })).toBe(total);
});
