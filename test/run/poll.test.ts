import { describe, expect, it } from 'vitest';
import type { CallFailure } from '../../src/mcp/port.js';
import { type AfterLook, afterAbort, afterPoll, beforePoll } from '../../src/run/poll.js';
import { attempt, failure, ok, run, running, spec, t0 } from './attempts.js';

const interval = 30_000;
const deadline = t0 + 1_800_000;

it.each([
  ['running', {}, 'poll'],
  ['running', { cancelledAt: t0 }, 'abort'],
  ['aborting', {}, 'abort'],
  ['reading', {}, 'hand_on'],
  ['starting', { intentAt: t0 }, 'search'],
  ['starting', {}, 'nothing'],
  ['queued', {}, 'nothing'],
  ['decided', {}, 'nothing'],
  ['done', {}, 'nothing'],
] as const)('before a poll: %s %j → %s', (phase, over, next) => {
  expect(beforePoll(attempt({ phase, ...over }))).toBe(next);
});

describe('afterPoll', () => {
  it('under way: comes back after the interval with what was seen', () => {
    const seen = run({ itemCount: 12, usageUsd: 0.5, statusMessage: 'page 3' });
    expect(afterPoll(running(), ok(seen), t0, interval)).toEqual({
      do: 'wait',
      until: t0 + interval,
      sighting: {
        status: 'RUNNING',
        statusMessage: 'page 3',
        datasetId: 'ds1',
        storeId: 'kv1',
        itemCount: 12,
        usageUsd: 0.5,
        endedAt: null,
        elsewhere: [],
      },
    });
  });

  it('what the server leaves out is kept, and a count never shrinks', () => {
    const known = running({ itemCount: 40, usageUsd: 0.5, statusMessage: 'page 3' });
    const bare = run({ datasetId: null, storeId: null, itemCount: 0 });
    expect(afterPoll(known, ok(bare), t0, interval)).toMatchObject({
      sighting: { datasetId: 'ds1', storeId: 'kv1', itemCount: 40, usageUsd: 0.5, statusMessage: 'page 3' },
    });
  });

  it.each(['SUCCEEDED', 'FAILED', 'TIMED-OUT', 'ABORTED'])('%s is read, also past the deadline', (status) => {
    const seen = ok(run({ status, final: true, finishedAtMs: t0 + 3_660_000 }));
    for (const now of [t0 + 90_000, deadline + 90_000]) {
      expect(afterPoll(running(), seen, now, interval)).toMatchObject({
        do: 'read',
        sighting: { status, endedAt: t0 + 61_000 },
      });
    }
  });

  it('the first sight of the end stays', () => {
    const seen = ok(run({ status: 'SUCCEEDED', final: true }));
    expect(afterPoll(running({ endedAt: t0 + 5 }), seen, t0 + 90_000, interval)).toMatchObject({
      sighting: { endedAt: t0 + 5 },
    });
  });

  const late: [string, ReturnType<typeof failure> | ReturnType<typeof ok>][] = [
    ['running', ok(run())],
    ['ready', ok(run({ status: 'READY' }))],
    ['of unknown status', ok(run({ status: 'UNKNOWN' }))],
    ['behind a cut connection', failure()],
    ['behind a dead token', failure({ refusal: 'server', holdReason: 'auth' })],
    ['behind a rate limit', failure({ refusal: 'not_now', holdReason: 'rate_limit', retryAfterMs: 600_000 })],
    ['behind a timeout', failure({ kind: 'timeout' })],
  ];
  it.each(late)('a run %s at the deadline is aborted', (_name, result) => {
    expect(afterPoll(running(), result as never, deadline, interval)).toMatchObject({
      do: 'abort',
      reason: 'deadline',
    });
  });

  it('a poll that fails is made again soon, then less often', () => {
    const at = (pollFailures: number) => afterPoll(running({ pollFailures }), failure(), t0, interval);
    expect([0, 1, 2, 9].map(at)).toEqual(
      [2_000, 4_000, 8_000, 30_000].map((ms) => ({ do: 'wait', until: t0 + ms, sighting: null })),
    );
  });

  it.each([
    ['server', 'auth', 'auth', null, 2_000],
    ['server', null, 'unreachable', null, 2_000],
    ['not_now', 'rate_limit', 'rate_limit', 60_000, 62_000],
  ] as const)('%s (%s) holds the server, not the run', (refusal, holdReason, reason, retryAfterMs, wait) => {
    const result = failure({ refusal, holdReason, retryAfterMs });
    expect(afterPoll(running(), result, t0, interval)).toEqual({
      do: 'hold',
      until: t0 + wait,
      reason,
      message: 'cut',
      retryAfterMs,
    });
  });
});

describe('a run the server does not know', () => {
  const unknown = failure({ kind: 'tool_error', notFound: true });
  const looks: [string, (over: object, now: number) => AfterLook][] = [
    ['poll', (over, now) => afterPoll(running(over), unknown, now, interval)],
    ['abort', (over, now) => afterAbort(running({ phase: 'aborting', ...over }), spec(), unknown, now)],
  ];
  describe.each(looks)('%s', (_name, look) => {
    it.each([
      ['once', { unknownSince: null, unknownTimes: 0 }, t0],
      ['twice within a minute', { unknownSince: t0, unknownTimes: 1 }, t0 + 15_000],
      ['many times within a minute', { unknownSince: t0, unknownTimes: 9 }, t0 + 59_999],
      ['twice, a minute apart', { unknownSince: t0, unknownTimes: 1 }, t0 + 60_000],
    ])('said %s is doubted', (_said, over, now) => {
      expect(look(over, now)).toEqual({ do: 'doubt', until: now + 15_000 });
    });

    it('said three times over a minute is believed', () => {
      expect(look({ unknownSince: t0, unknownTimes: 2 }, t0 + 75_000)).toMatchObject({
        do: 'settle',
        decision: {
          outcome: 'lost',
          message: 'The server has said for 1m15s that it does not know run run1.',
        },
      });
    });
  });
});

describe('afterAbort', () => {
  const aborting = (over = {}) => running({ phase: 'aborting', abort: 'deadline', ...over });
  const now = deadline + 5_000;

  it('not final yet: looks again, ever less often', () => {
    const at = (abortTries: number) =>
      afterAbort(aborting({ abortTries }), spec(), ok(run({ status: 'ABORTING' })), now);
    expect([0, 1, 8].map((tries) => (at(tries) as { until: number }).until - now)).toEqual([
      1_000, 2_000, 30_000,
    ]);
  });

  it('final after the deadline: what there is is read', () => {
    expect(afterAbort(aborting(), spec(), ok(run({ status: 'ABORTED', final: true })), now)).toMatchObject({
      do: 'read',
      sighting: { status: 'ABORTED' },
    });
  });

  it('final after a cancel: settled, nothing more is read', () => {
    const cancelled = aborting({ abort: 'cancel', cancelledAt: t0, items: 3 });
    const seen = ok(run({ status: 'ABORTED', final: true, usageUsd: 0.25 }));
    expect(afterAbort(cancelled, spec(), seen, now)).toMatchObject({
      do: 'settle',
      decision: {
        outcome: 'cancelled',
        message: 'Cancelled: the run is ABORTED; 3 items had been written and stay. $0.25 had been spent.',
      },
    });
  });

  const troubles: [string, Partial<CallFailure>, string][] = [
    ['a cut connection', {}, 'wait'],
    ['a server error', { kind: 'http_error', httpStatus: 503 }, 'wait'],
    ['a dead token', { refusal: 'server', holdReason: 'auth' }, 'hold'],
    ['a rate limit', { refusal: 'not_now', holdReason: 'rate_limit' }, 'hold'],
  ];
  it.each(troubles)('%s: the abort is repeated', (_name, over, next) => {
    expect(afterAbort(aborting({ abortTries: 40 }), spec(), failure(over), now)).toMatchObject({
      do: next,
      until: now + 30_000,
    });
  });

  it.each([
    ['deadline_exceeded', null],
    ['cancelled', t0],
  ] as const)('given up after a day as %s, with advice', (outcome, cancelledAt) => {
    const tired = aborting({ abortTries: 2_900, cancelledAt });
    for (const result of [failure(), ok(run({ status: 'ABORTING' }))]) {
      expect(afterAbort(tired, spec(), result, deadline + 86_400_000)).toMatchObject({
        do: 'settle',
        decision: {
          outcome,
          message:
            'The run was aborted 2900 times over 1d and the server never confirmed its end; look at run run1 there.',
        },
      });
    }
  });
});

it('an empty run names what is not empty, fit to be read on one line', () => {
  const seen = run({
    status: 'SUCCEEDED',
    final: true,
    recordKeys: ['OUTPUT', '\u001b[2J\nevil\u202e'],
    otherDatasets: [
      { name: 'reviews', id: 'ds2', itemCount: 7 },
      { name: 'none', id: 'ds3', itemCount: 0 },
    ],
  });
  expect(afterPoll(running(), ok(seen), t0, interval)).toMatchObject({
    sighting: {
      elsewhere: ['dataset reviews (ds2) with 7 items', 'record OUTPUT', 'record [2Jevil'],
    },
  });
});
