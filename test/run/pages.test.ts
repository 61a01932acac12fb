import { describe, expect, it } from 'vitest';
import type { CallFailure } from '../../src/mcp/port.js';
import { afterRead, beforeRead, nextSlice, sliceAfter, verifiableFrom } from '../../src/run/pages.js';
import { failure, lines, page, reading, spec, t0 } from './attempts.js';

const pageBytes = 1_000;
const ended = t0 + 60_000;
/** The first moment at which a read can prove the end. */
const sure = ended + 5_000;
const impatient = ended + 600_000;
const slice = { index: 0, offset: 0, limit: 10 };

it('a verified end needs a read made 5 s after the end of the run', () => {
  expect(verifiableFrom(reading())).toBe(sure);
});

describe('beforeRead', () => {
  const planned = reading({ slice, itemCount: 4 });
  it('a slice that cannot be full yet waits for the read that can prove the end', () => {
    expect(beforeRead(planned, spec(), pageBytes, sure - 1)).toEqual({ do: 'wait', until: sure });
    expect(beforeRead(planned, spec(), pageBytes, sure)).toEqual({ do: 'read', slice });
  });

  it('a slice with more behind it is read at once, the last one by the count waits to prove the end', () => {
    expect(beforeRead({ ...planned, itemCount: 11 }, spec(), pageBytes, ended)).toEqual({
      do: 'read',
      slice,
    });
    expect(beforeRead({ ...planned, itemCount: 10 }, spec(), pageBytes, ended)).toEqual({
      do: 'wait',
      until: sure,
    });
  });

  it('a slice ends where the run says that its items do', () => {
    expect(nextSlice(reading({ itemCount: 37 }), pageBytes)).toEqual({ index: 0, offset: 0, limit: 37 });
    expect(nextSlice(reading({ itemCount: 370 }), pageBytes)).toEqual({ index: 0, offset: 0, limit: 128 });
  });

  it('the first slice is a guess, a saved one is kept', () => {
    expect(nextSlice(reading(), pageBytes)).toEqual({ index: 0, offset: 0, limit: 128 });
    expect(nextSlice(planned, pageBytes)).toEqual(slice);
  });

  it('a cancel ends reading', () => {
    expect(beforeRead({ ...planned, cancelledAt: t0 }, spec(), pageBytes, sure)).toMatchObject({
      do: 'finish',
      decision: { outcome: 'cancelled' },
    });
  });

  it.each([
    [
      'SUCCEEDED',
      'The run SUCCEEDED but the server named no dataset of it, so nothing could be read; look at run run1 there.',
    ],
    ['FAILED', 'The run ended FAILED after 1m; it had no items.'],
  ])('a run that %s without a dataset is failed, never empty', (status, message) => {
    expect(beforeRead(reading({ status, datasetId: null }), spec(), pageBytes, sure)).toMatchObject({
      do: 'finish',
      decision: { outcome: 'failed', message },
    });
  });
});

describe('afterRead: which slice is written', () => {
  const full = lines(0, 10);
  it('a full slice, also before the end is sure', () => {
    expect(afterRead(reading(), slice, page(full, 40), ended, pageBytes)).toEqual({
      do: 'write',
      slice,
      lines: full,
      replan: false,
      end: false,
    });
  });

  it('a full slice that reaches the total ends reading', () => {
    expect(afterRead(reading({ itemCount: 10 }), slice, page(full, 10), sure, pageBytes)).toMatchObject({
      do: 'write',
      end: true,
    });
  });

  it('a short slice whose end is verified is pinned to what is there', () => {
    expect(afterRead(reading({ itemCount: 3 }), slice, page(lines(0, 3), 3), sure, pageBytes)).toEqual({
      do: 'write',
      slice: { ...slice, limit: 3 },
      lines: lines(0, 3),
      replan: true,
      end: true,
    });
  });

  it('too many bytes: the part that fits, saved as the slice before it is written', () => {
    expect(afterRead(reading(), slice, page(full, 10), sure, 7)).toEqual({
      do: 'write',
      slice: { ...slice, limit: 3 },
      lines: lines(0, 3),
      replan: true,
      end: false,
    });
  });

  it('a page of one item always passes', () => {
    const huge = 'x'.repeat(50_000);
    const one = { ...slice, limit: 1 };
    expect(afterRead(reading(), one, page([huge], 5), sure, 1)).toMatchObject({
      do: 'write',
      slice: one,
      lines: [huge],
      replan: false,
    });
    expect(afterRead(reading(), slice, page([huge, 'y'], 5), sure, 1)).toMatchObject({
      do: 'write',
      slice: { ...slice, limit: 1 },
      lines: [huge],
    });
  });

  const doubts: [string, object, ReturnType<typeof page>, number][] = [
    ['made too early', { itemCount: 3 }, page(lines(0, 3), 3), sure - 1],
    ['short of the total', { itemCount: null }, page(lines(0, 3), 4), sure],
    ['short of the count of the run', { itemCount: 4 }, page(lines(0, 3), 3), sure],
    ['without a total', { itemCount: null }, page(lines(0, 3), null), sure],
    ['empty too early', { itemCount: 0 }, page([], 0), sure - 1],
    ['empty, and the run had counted', { itemCount: 5 }, page([], 0), sure],
    ['empty, and the total says otherwise', { itemCount: null }, page([], 50), sure],
  ];
  it.each(doubts)('a short read %s is made again', (_name, over, result, requestedAt) => {
    expect(afterRead(reading({ reads: 1, ...over }), slice, result, requestedAt, pageBytes)).toEqual({
      do: 'wait',
      until: requestedAt + 4_000,
    });
  });

  it('zero is no exception: a verified read of nothing ends', () => {
    for (const itemCount of [0, null]) {
      expect(afterRead(reading({ itemCount }), slice, page([], 0), sure, pageBytes)).toEqual({
        do: 'end',
        shortOf: null,
      });
    }
  });

  it.each([
    ['the count of the run', { itemCount: 50 }, 0, 50],
    ['the total of the dataset', { itemCount: null }, 50, 50],
    ['the larger of both', { itemCount: 40 }, 50, 50],
    ['nothing, when nothing was promised', { itemCount: null }, null, null],
  ])('a dataset that stays behind beyond all patience is short of %s', (_name, over, total, shortOf) => {
    expect(afterRead(reading(over), slice, page([], total), impatient, pageBytes)).toEqual({
      do: 'end',
      shortOf,
    });
  });

  it('what there is after all patience is written first', () => {
    expect(afterRead(reading({ itemCount: 50 }), slice, page(lines(0, 2), 2), impatient, pageBytes)).toEqual({
      do: 'write',
      slice: { ...slice, limit: 2 },
      lines: lines(0, 2),
      replan: true,
      end: false,
    });
  });
});

describe('afterRead: a read that failed', () => {
  const read = (over: Partial<CallFailure>, requestedAt: number, limit = 10) =>
    afterRead(reading(), { ...slice, limit }, failure(over), requestedAt, pageBytes);

  it.each([
    [100, 25],
    [4, 1],
    [3, 1],
  ])('an answer of %i items that is too large is asked for with %i', (limit, less) => {
    expect(read({ kind: 'invalid_response', tooLarge: true }, sure, limit)).toEqual({
      do: 'shrink',
      slice: { ...slice, limit: less },
    });
  });

  it('one item that is too large cannot be asked for with less', () => {
    expect(read({ kind: 'invalid_response', tooLarge: true }, sure, 1)).toMatchObject({ do: 'wait' });
    expect(read({ kind: 'invalid_response', tooLarge: true, message: 'huge' }, impatient, 1)).toEqual({
      do: 'give_up',
      message: 'huge',
    });
  });

  it.each([
    ['the server', { refusal: 'server', holdReason: 'auth' }, 'auth', 2_000],
    ['the server, no reason', { refusal: 'server' }, 'unreachable', 2_000],
    ['not now', { refusal: 'not_now', holdReason: 'rate_limit', retryAfterMs: 9_000 }, 'rate_limit', 11_000],
  ] as const)('%s is held for as long as it takes', (_name, over, reason, wait) => {
    expect(read(over, impatient * 2)).toMatchObject({ do: 'hold', reason, until: impatient * 2 + wait });
  });

  it.each([
    ['network_error', {}, 'wait'],
    ['session_lost', {}, 'wait'],
    ['timeout', {}, 'wait'],
    ['http_error', { httpStatus: 503 }, 'wait'],
    ['http_error', { httpStatus: null }, 'wait'],
    ['http_error', { httpStatus: 400 }, 'give_up'],
    ['tool_error', {}, 'give_up'],
    ['tool_error', { notFound: true }, 'give_up'],
    ['protocol_error', {}, 'give_up'],
    ['invalid_response', {}, 'give_up'],
  ] as const)('%s %j: patient at first, in the end %s', (kind, over, end) => {
    expect(read({ kind, ...over }, sure)).toMatchObject({ do: 'wait', until: sure + 2_000 });
    expect(read({ kind, ...over }, impatient)).toMatchObject({ do: end });
  });
});

it('the next slice begins where this one ends, and fits the page', () => {
  expect(
    sliceAfter({ items: 10, bytes: 1_000, itemCount: null }, { index: 4, offset: 30, limit: 10 }, pageBytes),
  ).toEqual({
    index: 5,
    offset: 40,
    limit: 9,
  });
});
