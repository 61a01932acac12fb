/** Promise 6: slots held are runs in flight, a dead worker's come back, and no limit is ever exceeded by us. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { stageJobId } from '../../src/queue/names.js';
import { type Bench, yellowPages } from '../workers/harness.js';
import { backlog, broken, input, quick, tally } from './broken.js';
import { killed, spawnWorker } from './children.js';

describe('the limits of a server', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 6, memoryMb: 3_072 } });
    await Promise.all([bench.daemon({ timing: quick }), bench.daemon({ timing: quick })]);
  });
  afterAll(() => bench?.close());

  it('hold for three workers together, in runs and in memory', { timeout: 50_000 }, async () => {
    const run = { runSecs: 0.2 };
    const small = await backlog(bench, 30, run, { prefix: 'small', options: { memory: 128 } });
    const large = await backlog(bench, 20, run, { prefix: 'large', options: { memory: 1_024 } });
    expect(await tally(bench, [...small, ...large], 45_000)).toEqual({ succeeded: 50 });
    const stats = bench.sim.stats();
    expect(stats.maxInFlight).toBeLessThanOrEqual(6);
    expect(stats.maxMemoryMb).toBeLessThanOrEqual(3_072);
    // It did come near both.
    expect(stats.maxInFlight).toBeGreaterThanOrEqual(4);
    expect(stats.maxMemoryMb).toBeGreaterThan(2_048);
    const { redis, keys } = (bench.daemons[0] as Bench['daemons'][number]).ctx;
    await vi.waitFor(async () => expect(await redis.zcard(keys.slots('apify'))).toBe(0), 8_000);
    expect(await redis.hlen(keys.slotMemory('apify'))).toBe(0);
  });

  it('count a run of unknown memory as a usual one', { timeout: 30_000 }, async () => {
    const ids = await backlog(bench, 4, { runSecs: 2 }, { prefix: 'unknown' });
    const { redis, keys } = (bench.daemons[0] as Bench['daemons'][number]).ctx;
    await vi.waitFor(
      async () => expect(await redis.hvals(keys.slotMemory('apify'))).toEqual(['1024', '1024', '1024']),
      { timeout: 8_000, interval: 50 },
    );
    expect(await tally(bench, ids)).toEqual({ succeeded: 4 });
  });

  it('have no slot taken by jobs that start nothing', { timeout: 30_000 }, async () => {
    const { redis, keys, queues } = (bench.daemons[0] as Bench['daemons'][number]).ctx;
    const stale = Array.from({ length: 60 }, (_, index) => ({
      name: 'start',
      data: {},
      opts: { jobId: stageJobId(`default.stale-${index}`, 1, 'start') },
    }));
    await queues.stage('start', 'apify').addBulk(stale);
    await vi.waitFor(async () => expect(await queues.stage('start', 'apify').count()).toBe(0), {
      timeout: 20_000,
      interval: 20,
    });
    // A reserved slot that nobody gives back runs out after 5 s.
    await vi.waitFor(async () => expect(await redis.zcard(keys.slots('apify'))).toBe(0), 2_000);
  });
});

describe('a worker that dies in a start', () => {
  const timing = { ...quick, lockMs: 1_500, stalledEveryMs: 500, startingMs: 3_000 };
  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 1 } }, timing);
    await Promise.all(bench.daemons.splice(0).map((daemon) => daemon.stop(1_000)));
  });
  afterAll(() => bench?.close());

  it('gives its slot back, so that one slot alone does not deadlock', { timeout: 50_000 }, async () => {
    const slow = { faults: [{ op: 'start', kind: 'slow', ms: 2_000 }] };
    await bench.add('first', { input: input('first', slow) });
    const rest = await backlog(bench, 3, { runSecs: 0.2 });
    const child = await spawnWorker(bench, timing);
    await vi.waitFor(() => expect(bench.sim.ledger.entries({ kind: ['fault'] })).toHaveLength(1), 10_000);
    await killed(child);
    const { redis, keys, holds } = (await bench.daemon({ timing })).ctx;
    const held = await redis.zrange(keys.slots('apify'), '0', '-1');
    expect(held).toEqual(['default.first']);
    expect(await tally(bench, ['first', ...rest], 45_000)).toEqual({ succeeded: 4 });
    const starts = bench.sim.ledger
      .starts(yellowPages)
      .map(({ input }) => /"search":"([^"]+)/.exec(input ?? '')?.[1]);
    expect(new Set(starts).size).toBe(4);
    expect(starts).toHaveLength(4);
    expect(bench.sim.stats().maxInFlight).toBe(1);
    await vi.waitFor(async () => expect(await redis.zcard(keys.slots('apify'))).toBe(0), 8_000);
    expect((await holds.state('apify')).hold).toBeNull();
  });
});
