import { describe, expect, it } from 'vitest';
import type { CallFailure } from '../../src/mcp/port.js';
import { phaseRank, phases } from '../../src/run/attempt.js';
import { afterStart, beforeStart } from '../../src/run/start.js';
import { attempt, failure, ok, run, t0 } from './attempts.js';

it('phases are ranked in the order of the lifecycle', () => {
  expect(phases.map(phaseRank)).toEqual([0, 1, 2, 3, 4, 5, 6]);
});

describe('beforeStart', () => {
  const hour = 3_600_000;
  it.each([
    ['a waiting attempt', {}, { do: 'start' }],
    ['a start that had no effect', { phase: 'starting' }, { do: 'start' }],
    ['an intent without an answer', { phase: 'starting', intentAt: t0 }, { do: 'reconcile' }],
    [
      'an intent without an answer, though cancelled',
      { phase: 'starting', intentAt: t0, cancelledAt: t0 },
      { do: 'reconcile' },
    ],
    ['a run under way', { phase: 'running' }, { do: 'hand_on' }],
    ['a run being aborted', { phase: 'aborting' }, { do: 'nothing', why: 'the attempt is aborting' }],
    ['a run being read', { phase: 'reading' }, { do: 'nothing', why: 'the attempt is reading' }],
    ['a decided attempt', { phase: 'decided' }, { do: 'nothing', why: 'the attempt is decided' }],
    ['a settled attempt', { phase: 'done' }, { do: 'nothing', why: 'the attempt is done' }],
    ['the last moment before expiring', { submittedAt: t0 - hour + 1 }, { do: 'start' }],
    ['a later attempt does not expire', { submittedAt: t0 - 2 * hour, n: 2 }, { do: 'start' }],
  ] as const)('%s', (_name, over, next) => {
    expect(beforeStart(attempt(over), t0, hour)).toEqual(next);
  });

  it('expires after its wait', () => {
    expect(beforeStart(attempt({ submittedAt: t0 - 90 * 60_000 }), t0, hour)).toEqual({
      do: 'settle',
      decision: {
        outcome: 'expired',
        message: 'Expired: it waited 1h30m in the queue and expiresIn is 1h; nothing was spent.',
        warnings: [],
        finishedAt: t0,
      },
    });
  });

  it('a cancelled scrape never starts, whatever else is true of it', () => {
    const cancelled = attempt({ cancelledAt: t0 - 1, submittedAt: t0 - 2 * hour });
    expect(beforeStart(cancelled, t0, hour)).toMatchObject({
      do: 'settle',
      decision: {
        outcome: 'cancelled',
        message: 'Cancelled before a run was started; nothing was spent.',
      },
    });
  });
});

describe('afterStart', () => {
  it('a run', () => {
    expect(afterStart(ok(run()), t0)).toEqual({ do: 'run', run: run() });
  });

  const putBack: [string, Partial<CallFailure>, string, string][] = [
    ['not now', { refusal: 'not_now', holdReason: 'rate_limit' }, 'cool_down', 'rate_limit'],
    ['not now, no reason', { refusal: 'not_now' }, 'cool_down', 'capacity'],
    ['the server', { refusal: 'server', holdReason: 'payment' }, 'server', 'payment'],
    ['the server, no reason', { refusal: 'server' }, 'server', 'unreachable'],
    ['the tool', { refusal: 'tool', holdReason: 'auth' }, 'tool', 'auth'],
    ['the tool, no reason', { refusal: 'tool' }, 'tool', 'tools_missing'],
    ['a fault without effect', { noEffect: true }, 'none', 'unreachable'],
  ];
  it.each(putBack)('%s: put back, nothing spent', (_name, over, hold, reason) => {
    expect(afterStart(failure({ retryAfterMs: 7_000, ...over }), t0)).toEqual({
      do: 'put_back',
      hold,
      reason,
      retryAfterMs: 7_000,
      message: 'cut',
    });
  });

  it.each([
    ['scrape', 'The server refused this scrape: bad field', false],
    ['unknown', 'The server refused the start: bad field', true],
  ] as const)('%s: rejected', (refusal, message, unrecognised) => {
    expect(afterStart(failure({ refusal, message: 'bad field', noEffect: true }), t0)).toEqual({
      do: 'settle',
      decision: { outcome: 'rejected', message, warnings: [], finishedAt: t0 },
      unrecognised,
    });
  });

  it.each([
    'network_error',
    'timeout',
    'http_error',
    'invalid_response',
    'session_lost',
    'tool_error',
  ] as const)('a %s whose effect is unknown is reconciled, never started again', (kind) => {
    expect(afterStart(failure({ kind }), t0)).toEqual({ do: 'reconcile', message: 'cut' });
  });
});
