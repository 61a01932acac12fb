/** Promise 7: what is held is tried with a start that is made; whatever ends without one leaves the try to the next. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { type Bench, yellowPages } from '../workers/harness.js';
import { broken, input, said } from './broken.js';

const context = (bench: Bench) => (bench.daemons[0] as Bench['daemons'][number]).ctx;
/** The next try would be far off. */
const seldom = { firstTrialMs: 1_000, trialEveryMs: 60_000, sweepEveryMs: 300 };
const unfit = { input: { search: { a: 1 } } };

describe('the try of a held server', () => {
  it('is kept for a job that comes later', { timeout: 40_000 }, async () => {
    const bench = await broken({}, seldom);
    try {
      await context(bench).holds.holdServer('apify', 'payment', 'no money left', Date.now());
      // Idle workers ask for work every five seconds, and find a try that is due and no job.
      await delay(8_000);
      await bench.add('later', { input: input('later') });
      await vi.waitFor(() => expect(bench.sim.stats().starts).toBe(1), { timeout: 7_000 });
      await vi.waitFor(() => expect(said(bench, 'server.released')).toHaveLength(1), { timeout: 2_000 });
    } finally {
      await bench.close();
    }
  });

  it('is kept when a scrape ends without a start', { timeout: 40_000 }, async () => {
    const bench = await broken({}, seldom);
    try {
      await bench.add('first', { input: input('first') });
      expect(await bench.outcome('first', 20_000)).toMatchObject({ outcome: 'succeeded' });
      await context(bench).holds.holdServer('apify', 'payment', 'no money left', Date.now());
      await bench.add('unfit', unfit);
      await delay(200);
      await bench.add('after', { input: input('after') });
      expect(await bench.outcome('unfit', 15_000)).toMatchObject({ outcome: 'rejected', runId: null });
      await vi.waitFor(() => expect(bench.sim.stats().starts).toBe(2), { timeout: 7_000 });
    } finally {
      await bench.close();
    }
  });
});

describe('a held server', () => {
  it('goes on when the answer of its try is lost and the run of it is found', {
    timeout: 60_000,
  }, async () => {
    const bench = await broken({}, seldom);
    try {
      await context(bench).holds.holdServer('apify', 'payment', 'no money left', Date.now());
      bench.sim.faults.next('reset_after', 'start');
      await bench.add('first', { input: input('first') });
      await bench.add('second', { input: input('second') });
      expect(await bench.outcome('first', 30_000)).toMatchObject({ outcome: 'succeeded' });
      expect(await bench.outcome('second', 15_000)).toMatchObject({ outcome: 'succeeded' });
      expect(said(bench, 'start.adopted')).toHaveLength(1);
      expect(said(bench, 'server.released')).toHaveLength(1);
    } finally {
      await bench.close();
    }
  });

  it('stays held when a run is found of a start from before', { timeout: 60_000 }, async () => {
    const bench = await broken({}, seldom);
    try {
      bench.sim.faults.next('reset_after', 'start');
      await bench.add('before', { input: input('before', { runSecs: 6 }) });
      await vi.waitFor(() => expect(said(bench, 'start.unanswered')).toHaveLength(1), { timeout: 10_000 });
      await context(bench).holds.holdServer('apify', 'payment', 'no money left', Date.now());
      await vi.waitFor(() => expect(said(bench, 'start.adopted')).toHaveLength(1), { timeout: 20_000 });
      await delay(300);
      expect((await context(bench).holds.state('apify')).hold).not.toBeNull();
    } finally {
      await bench.close();
    }
  });
});

describe('the try of a held tool', () => {
  it('is kept when a scrape ends without a start', { timeout: 40_000 }, async () => {
    const bench = await broken({}, { trialEveryMs: 8_000, sweepEveryMs: 300 });
    try {
      const { holds } = context(bench);
      const heldAt = Date.now();
      await holds.holdTool('apify', yellowPages, 'payment', 'not rented', heldAt);
      await bench.add('unfit', unfit);
      const parked = () => holds.parkedCount('apify', yellowPages);
      await vi.waitFor(async () => expect(await parked()).toBe(1), { timeout: 5_000 });
      await bench.add('after', { input: input('after') });
      await vi.waitFor(() => expect(bench.sim.stats().starts).toBe(1), { timeout: 20_000, interval: 100 });
      expect(Date.now() - heldAt).toBeLessThan(14_000);
      expect(await bench.outcome('unfit', 5_000)).toMatchObject({ outcome: 'rejected' });
    } finally {
      await bench.close();
    }
  });
});
