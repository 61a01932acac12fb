import { describe, expect, it } from 'vitest';
import {
  backoff,
  fittingCount,
  nextAbortAt,
  nextPollAt,
  nextReadAt,
  pageLimit,
  retryDelay,
  runEnd,
} from '../../src/run/schedule.js';
import { attempt, running, t0 } from './attempts.js';

it.each([
  [1, 2_000],
  [2, 4_000],
  [4, 16_000],
  [5, 30_000],
  [1_000_000, 30_000],
])('backoff after %i failures is %i ms', (failures, ms) => {
  expect(backoff(2_000, failures, 30_000)).toBe(ms);
});

describe('nextPollAt', () => {
  const minute = 60_000;
  it.each([
    ['after the interval', { deadlineAt: null }, t0, 30_000, t0 + 30_000],
    ['not past the deadline', { deadlineAt: t0 + 10_000 }, t0, 30_000, t0 + 10_000],
    ['at the interval again once the deadline is over', { deadlineAt: t0 - 1 }, t0, 30_000, t0 + 30_000],
    ['sooner after a failure', { deadlineAt: null, pollFailures: 1 }, t0, 30_000, t0 + 2_000],
    ['growing with failures', { deadlineAt: null, pollFailures: 3 }, t0, 30_000, t0 + 8_000],
    ['at most the interval', { deadlineAt: null, pollFailures: 30 }, t0, 30_000, t0 + 30_000],
    [
      'never longer than a short interval',
      { deadlineAt: null, pollFailures: 1 },
      t0,
      minute / 60,
      t0 + 1_000,
    ],
  ])('%s', (_name, over, now, interval, at) => {
    expect(nextPollAt(running(over), now, interval)).toBe(at);
  });
});

it.each([
  [0, 1_000],
  [1, 1_000],
  [3, 4_000],
  [9, 30_000],
])('an abort is repeated %i tries later after %i ms', (tries, ms) => {
  expect(nextAbortAt(t0, tries)).toBe(t0 + ms);
});

it.each([
  [0, 2_000],
  [1, 2_000],
  [2, 4_000],
  [9, 30_000],
])('a short slice is read again after %i reads in %i ms', (reads, ms) => {
  expect(nextReadAt(t0, reads)).toBe(t0 + ms);
});

it.each([
  [1, 30_000],
  [2, 60_000],
  [20, 900_000],
])('attempt %i is followed after %i ms', (n, ms) => {
  expect(retryDelay(n, 30_000)).toBe(ms);
});

describe('runEnd is by our clock, and no earlier than the run ended', () => {
  const replied = t0 + 1_000;
  const cases: [string, { server: number | null; replied: number | null }, number | null, number, number][] =
    [
      ['clocks agree', { server: t0, replied }, t0 + 60_000, t0 + 90_000, replied + 60_000],
      [
        'the server is an hour ahead',
        { server: t0 + 3_600_000, replied },
        t0 + 3_660_000,
        t0 + 90_000,
        replied + 60_000,
      ],
      [
        'the server is a year behind',
        { server: t0 - 31_536_000_000, replied },
        t0 - 31_535_940_000,
        t0 + 90_000,
        replied + 60_000,
      ],
      ['never in the future', { server: t0, replied }, t0 + 600_000, t0 + 90_000, t0 + 90_000],
      ['an end before its start says nothing', { server: t0, replied }, t0 - 1, t0 + 90_000, t0 + 90_000],
      ['no end', { server: t0, replied }, null, t0 + 90_000, t0 + 90_000],
      ['no start, as of an adopted run', { server: null, replied }, t0 + 60_000, t0 + 90_000, t0 + 90_000],
      ['no answer', { server: t0, replied: null }, t0 + 60_000, t0 + 90_000, t0 + 90_000],
    ];
  it.each(cases)('%s', (_name, clocks, finished, now, end) => {
    const seen = running({ serverStartedAt: clocks.server, repliedAt: clocks.replied });
    expect(runEnd(seen, finished, now)).toBe(end);
  });
});

describe('pageLimit', () => {
  it.each([
    ['a first guess', 0, 0, 524_288, 128],
    ['from the size of what was read', 100, 100_000, 100_000, 90],
    ['one item at least', 10, 100_000_000, 524_288, 1],
    ['at most 5,000', 1_000, 3_000, 524_288_000, 5_000],
    ['items of no size', 5, 0, 1_000, 900],
  ])('%s', (_name, items, bytes, pageBytes, limit) => {
    expect(pageLimit({ items, bytes }, pageBytes)).toBe(limit);
  });
});

describe('fittingCount', () => {
  it.each([
    ['all', ['aaaa', 'bbbb'], 10, 2],
    ['the line break counts', ['aaaa', 'bbbb'], 9, 1],
    ['bytes, not characters', ['éé', 'éé'], 9, 1],
    ['a page of one item always passes', ['x'.repeat(1_000), 'y'], 10, 1],
    ['nothing', [], 10, 0],
  ])('%s', (_name, texts, bytes, fits) => {
    expect(fittingCount(texts, bytes)).toBe(fits);
  });
});

it('the schedule of an attempt without a run is defined', () => {
  expect(nextPollAt(attempt(), t0, 30_000)).toBe(t0 + 30_000);
});
