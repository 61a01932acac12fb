/** Promise 7: the brake, pauses, and how a server cools down. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Bench, maps, yellowPages } from '../workers/harness.js';
import { backlog, broken, gauge, mapsInput, said, tally } from './broken.js';

describe('the brake', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 30 } });
  });
  afterAll(() => bench?.close());

  it('holds a tool whose runs turn bad, and no other', { timeout: 50_000 }, async () => {
    const bad = await backlog(bench, 20, { items: 0 }, { prefix: 'bad' });
    const good = Array.from({ length: 20 }, (_, index) => `maps-${index}`);
    await Promise.all(good.map((id) => bench.add(id, { tool: maps, input: mapsInput(id) })));
    expect(await tally(bench, bad, 40_000)).toEqual({ empty: 20 });
    expect(await tally(bench, good, 40_000)).toEqual({ succeeded: 20 });
    await expect
      .poll(() => said(bench, 'tool.brake'), { timeout: 5_000 })
      .toMatchObject([
        {
          level: 'error',
          tool: yellowPages,
          reason: 'brake',
          message: '20 of its last 20 runs were empty, failed or rejected',
        },
      ]);
    await expect
      .poll(() => gauge(bench, 'trawl_tool_held'), { timeout: 5_000, interval: 300 })
      .toMatchObject({ [`{server="apify",tool="${yellowPages}",reason="brake"}`]: 1 });
    const { tools } = await (bench.daemons[0] as Bench['daemons'][number]).ctx.holds.state('apify');
    expect(Object.keys(tools)).toEqual([yellowPages]);
  });

  it('lets go after three good trials, one at a time', { timeout: 50_000 }, async () => {
    const started = bench.sim.stats().starts;
    const ids = await backlog(bench, 12, {}, { prefix: 'after' });
    await expect.poll(() => said(bench, 'tool.released').length, { timeout: 30_000, interval: 50 }).toBe(1);
    // Three good ones end it; a fourth or more may have been on its way, for ends of datasets take five seconds.
    const trials = bench.sim.stats().starts - started;
    expect(trials).toBeGreaterThanOrEqual(3);
    expect(await tally(bench, ids, 30_000)).toEqual({ succeeded: 12 });
  });
});

describe('a pause', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 10 } });
  });
  afterAll(() => bench?.close());

  it('of a server or a tool stops starts until an operator resumes it', { timeout: 50_000 }, async () => {
    const { holds } = (bench.daemons[0] as Bench['daemons'][number]).ctx;
    await holds.pause('apify', null, Date.now());
    const ids = await backlog(bench, 10);
    await expect
      .poll(() => gauge(bench, 'trawl_server_held'), { timeout: 5_000, interval: 300 })
      .toMatchObject({ '{server="apify",reason="paused"}': 1 });
    // Longer than any trial of a hold would take.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(bench.sim.stats().starts).toBe(0);
    await holds.pause('apify', yellowPages, Date.now());
    await holds.resume('apify', null);
    await bench.add('beside', { tool: maps, input: mapsInput('beside') });
    expect(await bench.outcome('beside')).toMatchObject({ outcome: 'succeeded' });
    await expect
      .poll(() => gauge(bench, 'trawl_tool_held'), { timeout: 5_000, interval: 300 })
      .toMatchObject({ [`{server="apify",tool="${yellowPages}",reason="paused"}`]: 1 });
    expect(bench.sim.stats().starts).toBe(1);
    await holds.resume('apify', yellowPages);
    expect(await tally(bench, ids, 30_000)).toEqual({ succeeded: 10 });
  });
});

describe('"not now"', () => {
  it('of calls that were sent before the server cooled down is not counted twice', async () => {
    const bench = await broken();
    try {
      const { holds, redis, keys } = (bench.daemons[0] as Bench['daemons'][number]).ctx;
      const other = (await bench.daemon()).ctx.holds;
      const over = () => redis.hset(keys.server('apify'), 'coolUntil', Date.now() - 1_000);
      // Two processes meet one 429; one of them hears of it when the cool-down is over already.
      const first = await holds.coolDown('apify', 'rate_limit', null, true, 50);
      expect(first).toEqual({ ms: 5_000, began: true });
      await over();
      expect(await other.coolDown('apify', 'rate_limit', null, true, 6_000)).toEqual({ ms: 0, began: false });
      const state = () => redis.hmget(keys.server('apify'), 'coolFails', 'penalty');
      expect(await state()).toEqual(['1', '1']);
      // Sent after it, it is another one.
      expect(await other.coolDown('apify', 'rate_limit', null, true, 500)).toEqual({
        ms: 10_000,
        began: true,
      });
      expect(await state()).toEqual(['2', '2']);
      // What the server asks for is waited for, whichever call heard it.
      const longer = await holds.coolDown('apify', 'rate_limit', 30_000, true, 50);
      expect(longer).toEqual({ ms: 30_000, began: false });
      expect((await holds.state('apify')).coolUntil).toBeGreaterThan(Date.now() + 25_000);
      expect(await state()).toEqual(['2', '2']);
    } finally {
      await bench.close();
    }
  });

  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 8 } });
  });
  afterAll(() => bench?.close());

  it('cools down for 5 s doubling to 5 min, and sinks the run limit by one each time', async () => {
    const { ctx } = bench.daemons[0] as Bench['daemons'][number];
    const state = ctx.keys.server('apify');
    const spans: number[] = [];
    const limits: number[] = [];
    const { slots } = ctx.server('apify');
    for (let time = 0; time < 9; time += 1) {
      const { ms, began } = await ctx.holds.coolDown('apify', 'capacity', null, true, 0);
      expect(began).toBe(true);
      spans.push(ms / 1_000);
      expect(await slots.reserve(20)).toMatchObject({ members: [], reason: 'capacity' });
      expect(await ctx.holds.coolDown('apify', 'capacity', null, true, 0)).toMatchObject({ began: false });
      await ctx.redis.hset(state, 'coolUntil', Date.now() - 1);
      const { members } = await slots.reserve(20);
      limits.push(members.length);
      await slots.release(...members);
    }
    expect(spans).toEqual([5, 10, 20, 40, 80, 160, 300, 300, 300]);
    expect(limits).toEqual([7, 6, 5, 4, 3, 2, 1, 1, 1]);
    // A Retry-After that is longer is kept to; a start that is taken makes the next one short again.
    await slots.handOn('default.a', yellowPages);
    await slots.release('default.a');
    expect(await ctx.holds.coolDown('apify', 'rate_limit', null, false, 0)).toEqual({
      ms: 5_000,
      began: true,
    });
    await ctx.redis.hset(state, 'coolUntil', Date.now() - 1, 'penaltyUntil', Date.now() - 1);
    expect((await ctx.holds.coolDown('apify', 'rate_limit', 42_000, false, 0)).ms).toBe(42_000);
    await ctx.redis.hset(state, 'coolUntil', Date.now() - 1);
    expect((await slots.reserve(20)).members).toHaveLength(8);
  });
});
