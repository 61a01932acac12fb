import { describe, expect, it } from 'vitest';
import { exitCodeOf } from '../../src/cli/run/summary.js';
import { type Settled, Tally } from '../../src/cli/run/tally.js';
import { outcomeClass } from '../../src/run/outcome.js';
import { outcomes } from '../../src/scrape/types.js';

const settled = (more: Partial<Settled> = {}): Settled => ({
  id: 'a',
  batch: 'b',
  outcome: 'succeeded',
  message: '3 items in 1 page.',
  items: 3,
  usageUsd: 0.5,
  runId: 'run1',
  warnings: [],
  finishedAt: '2026-12-02T14:03:22.000Z',
  ...more,
});

describe('a tally', () => {
  it.each(outcomes.map((outcome) => [outcome, { ok: 0, warning: 3, failure: 1 }[outcomeClass(outcome)]]))(
    'ends with the exit code of %s: %i',
    (outcome, code) => {
      const tally = new Tally(2);
      for (const key of ['b.1', 'b.2']) tally.expect(key, 'warn');
      tally.settle('b.1', settled());
      tally.settle('b.2', settled({ outcome: outcome as Settled['outcome'] }));
      expect(exitCodeOf({ tally, end: 'settled' })).toBe(code);
      for (const end of ['drained', 'stopped', 'left', 'redis_away'] as const) {
        expect(exitCodeOf({ tally, end })).toBe(4);
      }
    },
  );

  it('takes an empty run for a failure when its job says so', () => {
    const tally = new Tally(1);
    tally.expect('b.1', 'fail');
    tally.settle('b.1', settled({ outcome: 'empty' }));
    expect(exitCodeOf({ tally, end: 'settled' })).toBe(1);
  });

  it('counts each scrape once, however often it is told, and none that is not its own', () => {
    const tally = new Tally(2);
    tally.expect('b.1', 'warn');
    expect(tally.settle('b.1', settled())).toBe(true);
    expect(tally.settle('b.1', settled())).toBe(false);
    expect(tally.settle('b.other', settled())).toBe(false);
    tally.remove('b.1');
    expect(tally).toMatchObject({ settled: 1, openCount: 0, items: 3, usageUsd: 0.5, usageUnknown: 0 });
  });

  it('tells an unknown cost from none', () => {
    const tally = new Tally(3);
    for (const key of ['b.1', 'b.2', 'b.3']) tally.expect(key, 'warn');
    tally.settle('b.1', settled({ usageUsd: null }));
    tally.settle('b.2', settled({ usageUsd: null, runId: null, outcome: 'rejected' }));
    tally.settle('b.3', settled({ usageUsd: 0 }));
    expect(tally).toMatchObject({ usageUsd: 0, usageUnknown: 1 });
  });

  it('groups what differs only in numbers, keeps what does not apart, and lists warnings of good outcomes', () => {
    const tally = new Tally(4);
    const say = (key: string, more: Partial<Settled>) => {
      tally.expect(key, 'warn');
      tally.settle(key, settled(more));
    };
    say('b.2', { outcome: 'failed', message: 'It ended after 3m2s with 14 items.' });
    say('b.1', { outcome: 'failed', message: 'It ended after 40m1s with 2 items.' });
    say('b.3', { outcome: 'failed', message: 'Something else.' });
    say('b.4', { warnings: ['A record was too large.'] });
    expect(tally.byCause()).toEqual([
      {
        kind: 'failure',
        outcome: 'failed',
        message: 'It ended after NmNs with N items.',
        scrapes: ['b.1', 'b.2'],
      },
      { kind: 'failure', outcome: 'failed', message: 'Something else.', scrapes: ['b.3'] },
      { kind: 'note', outcome: 'succeeded', message: 'A record was too large.', scrapes: ['b.4'] },
    ]);
  });

  it('a scrape that left the queue without an outcome is a failure', () => {
    const tally = new Tally(1);
    tally.expect('b.1', 'warn');
    tally.remove('b.1');
    expect(exitCodeOf({ tally, end: 'settled' })).toBe(1);
    expect(tally.byCause()).toMatchObject([{ kind: 'failure', outcome: 'removed', scrapes: ['b.1'] }]);
  });
});
