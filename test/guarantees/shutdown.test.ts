/** Promise 8: a stop takes no new jobs, ends or hands back calls, never cuts a start, and changes no outcome. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Bench, yellowPages } from '../workers/harness.js';
import { backlog, broken, input, quick, tally } from './broken.js';

const timing = { ...quick, lockMs: 3_000, stalledEveryMs: 1_000 };

describe('a stop', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 3 }, config: { start: { timeout: '8s' } } }, timing);
  });
  afterAll(() => bench?.close());

  it('ends within its grace, but for a start under way, which is never cut', {
    timeout: 45_000,
  }, async () => {
    const { sim } = bench;
    const hang = (op: string, times: number) => ({ faults: [{ op, kind: 'hang', times }] });
    await bench.add('poll', { input: input('poll', { runSecs: 1, ...hang('poll', 1) }) });
    await bench.add('read', { input: input('read', { runSecs: 0.3, items: 5, ...hang('read', 1) }) });
    const struck = (op: string) =>
      sim.ledger.entries({ kind: ['fault'] }).filter(({ key }) => key === op).length;
    await vi.waitFor(() => expect([struck('poll'), struck('read')]).toEqual([1, 1]), 20_000);
    const slow = { faults: [{ op: 'start', kind: 'slow', ms: 5_000 }] };
    await bench.add('start', { input: input('start', slow) });
    await vi.waitFor(() => expect(struck('start')).toBe(1), 10_000);
    const waiting = await backlog(bench, 10);
    const began = Date.now();
    const [daemon] = bench.daemons.splice(0) as [Bench['daemons'][number]];
    const before = sim.ledger.starts(yellowPages).length;
    await daemon.stop(2_000);
    const took = Date.now() - began;
    // The start was answered 5 s after it was made; poll and read, which hang, were given up after half the grace.
    expect(took).toBeGreaterThan(3_000);
    expect(took).toBeLessThan(8_000);
    expect(sim.ledger.starts(yellowPages).length - before).toBeLessThanOrEqual(1 + 2);
    await bench.daemon({ timing });
    expect(await tally(bench, ['poll', 'read', 'start', ...waiting], 35_000)).toEqual({ succeeded: 13 });
    // Nothing was started twice, and the start under way was known when its process left.
    expect(sim.ledger.starts(yellowPages)).toHaveLength(13);
    expect(bench.logged.filter(({ event }) => event === 'start.unanswered')).toEqual([]);
  });

  it('needs no time when nothing is in hand', async () => {
    const idle = await bench.daemon({ timing });
    bench.daemons.splice(bench.daemons.indexOf(idle), 1);
    const began = Date.now();
    await idle.stop(10_000);
    expect(Date.now() - began).toBeLessThan(2_000);
  });
});

describe('rolling restarts of all workers', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 8 } }, timing);
    await Promise.all([bench.daemon({ timing }), bench.daemon({ timing })]);
  });
  afterAll(() => bench?.close());

  it('under load change no outcome', { timeout: 55_000 }, async () => {
    const ids = await backlog(bench, 60, { runSecs: 0.5, items: 3 });
    for (let restart = 0; restart < 6; restart += 1) {
      await delay(700);
      const [oldest] = bench.daemons.splice(0, 1) as [Bench['daemons'][number]];
      await Promise.all([oldest.stop(3_000), bench.daemon({ timing })]);
    }
    expect(await tally(bench, ids, 45_000)).toEqual({ succeeded: 60 });
    expect(bench.sim.ledger.starts(yellowPages)).toHaveLength(60);
    const outcomes = await Promise.all(ids.map((id) => bench.outcome(id)));
    expect(outcomes.every(({ items, attempt }) => items === 3 && attempt === 1)).toBe(true);
    expect(bench.sim.stats().maxInFlight).toBeLessThanOrEqual(8);
    const bad = bench.logged.filter(({ level }) => level === 'error');
    expect(bad).toEqual([]);
  });
});
