import { describe, expect, it } from 'vitest';
import { afterSearch, sameInput } from '../../src/run/reconcile.js';
import { attempt, t0 } from './attempts.js';

const patience = { certainAfterMs: 300_000, unknownAfterMs: 900_000 };
const lost = (over = {}) => attempt({ phase: 'starting', intentAt: t0, ambiguousSince: t0, ...over });
const nothing = (after: number) => ({ found: null, covered: true, readAt: t0 + after });
const partly = (after: number) => ({ found: null, covered: false, readAt: t0 + after });

describe('afterSearch', () => {
  it.each([0, 1_000, 300_000, 900_000, 9_000_000])('a run that is found after %i ms is adopted', (after) => {
    for (const cancelledAt of [null, t0]) {
      expect(afterSearch(lost({ cancelledAt }), { found: 'run9' }, true, t0 + after, patience)).toEqual({
        do: 'adopt',
        runId: 'run9',
      });
    }
  });

  it('certainly no run: only a list of the whole window, five minutes after the intent', () => {
    expect(afterSearch(lost(), nothing(299_999), true, t0 + 299_999, patience)).toMatchObject({ do: 'wait' });
    expect(afterSearch(lost(), nothing(300_000), true, t0 + 300_000, patience)).toEqual({
      do: 'start_again',
    });
    // Read for another scrape a moment before that.
    expect(afterSearch(lost(), nothing(299_000), true, t0 + 300_000, patience)).toMatchObject({ do: 'wait' });
    expect(afterSearch(lost(), partly(300_000), true, t0 + 300_000, patience)).toMatchObject({ do: 'wait' });
  });

  it.each([0, 300_000, 900_000])(
    'nothing could be read %i ms after the intent: that time does not count',
    (since) => {
      const now = t0 + since;
      expect(afterSearch(lost(), null, true, now, patience)).toEqual({ do: 'wait', until: now + 10_000 });
    },
  );

  it('a cancelled scrape is not started again', () => {
    expect(
      afterSearch(lost({ cancelledAt: t0 }), nothing(300_000), true, t0 + 300_000, patience),
    ).toMatchObject({
      do: 'settle',
      decision: { outcome: 'cancelled', message: 'Cancelled; the start under way had no effect.' },
    });
  });

  const unknown = (why: string) =>
    `The answer to the start call was lost, so a run may exist; nothing was started again. ${why} Look at the runs on the server before you retry.`;

  it('in the end nothing is known: the list never reached the intent', () => {
    expect(afterSearch(lost(), partly(900_000), true, t0 + 900_000, patience)).toMatchObject({
      do: 'settle',
      decision: { outcome: 'start_unknown', message: unknown('It could not be found out in 15m.') },
    });
  });

  it('a server without a list of runs settles it at once', () => {
    expect(afterSearch(lost(), null, false, t0, patience)).toMatchObject({
      do: 'settle',
      decision: {
        outcome: 'start_unknown',
        message: unknown('The server offers no list of runs to look it up in.'),
      },
    });
  });

  it.each([
    [0, 2_000],
    [10_000, 4_000],
    [60_000, 30_000],
    [299_500, 1_000],
    [280_000, 20_000],
    [400_000, 30_000],
  ])('%i ms after the intent the next look is in %i ms', (since, wait) => {
    const now = t0 + since;
    expect(afterSearch(lost(), partly(since), true, now, patience)).toEqual({
      do: 'wait',
      until: now + wait,
    });
  });
});

describe('sameInput', () => {
  const asked = { q: ['plumbers'], city: 'Austin', max: 10, deep: { a: [1, { b: null }] } };
  it.each<[string, unknown, unknown, boolean]>([
    ['itself', asked, structuredClone(asked), true],
    [
      'with defaults filled in',
      asked,
      { ...asked, language: 'en', deep: { a: [1, { b: null, c: 1 }] } },
      true,
    ],
    ['types coerced', asked, { ...asked, max: '10' }, true],
    ['a list of one taken out', asked, { ...asked, q: 'plumbers' }, true],
    ['a key missing', asked, { q: asked.q, city: 'Austin', max: 10 }, false],
    ['another value', asked, { ...asked, city: 'Dallas' }, false],
    ['another order', { q: ['a', 'b'] }, { q: ['b', 'a'] }, false],
    ['a longer list', { q: ['a'] }, { q: ['a', 'b'] }, false],
    ['a shorter list', { q: ['a', 'b'] }, { q: ['a'] }, false],
    ['a list for a text', { q: 'a' }, { q: ['a'] }, false],
    ['a mapping for a text', { q: 'a' }, { q: { a: 1 } }, false],
    ['a text for a mapping', { q: { a: 1 } }, { q: '[object Object]' }, false],
    ['a list for a mapping', { q: { 0: 'a' } }, { q: ['a'] }, false],
    ['nothing', asked, null, false],
    ['an inherited key', { toString: 'x' }, {}, false],
    ['an empty input', {}, { anything: 1 }, true],
  ])('%s: %j in %j → %s', (_name, ours, record, same) => {
    expect(sameInput(ours, record)).toBe(same);
  });
});
