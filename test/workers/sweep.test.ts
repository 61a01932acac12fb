import { afterEach, describe, expect, it } from 'vitest';
import { createMetrics, type Metrics } from '../../src/metrics/index.js';
import { TcpProxy } from '../chaos/proxy.js';
import { type Sim, startSim } from '../sim/index.js';
import { Fleet } from './fleet.js';
import { yellowPages } from './harness.js';

const servers = { a: { tools: [yellowPages] }, b: { tools: [yellowPages] } };
const timing = { sweepEveryMs: 200, probeEveryMs: 200, reapEveryMs: 200 };

const heldSeries = async (metrics: Metrics): Promise<string[]> =>
  (await metrics.text()).split('\n').filter((line) => /^trawl_server_held\{.*\} 1$/.test(line));
const inFlightSeries = async (metrics: Metrics): Promise<number> =>
  (await metrics.text()).split('\n').filter((line) => line.startsWith('trawl_runs_in_flight{')).length;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
const sim = async (): Promise<Sim> => {
  const started = await startSim({ conditions: { mix: 'fixed' } });
  closers.push(() => started.close());
  return started;
};
const fleetOf = async (...sims: Sim[]): Promise<Fleet> => {
  const entries = sims.map((each, index) => [
    'ab'[index],
    { url: each.url, token: 'test-token-canary', tools: [yellowPages] },
  ]);
  const fleet = await Fleet.inFrontOf(Object.fromEntries(entries));
  closers.push(() => fleet.close());
  return fleet;
};

describe('while one server hangs', () => {
  it('a hold of another is lifted as soon as it works', async () => {
    const [hanging, fine] = [await sim(), await sim()];
    const fleet = await fleetOf(hanging, fine);
    const { ctx } = await fleet.daemon({ timing });
    hanging.faults.add({ kind: 'hang' });
    await ctx.holds.holdServer('a', 'unreachable', 'said the test', Date.now());
    await expect.poll(() => hanging.stats().faultsFired.hang ?? 0, { timeout: 10_000 }).toBeGreaterThan(0);
    // The probe of the first one now waits for half a minute.
    await ctx.holds.holdServer('b', 'unreachable', 'said the test', Date.now());
    await expect.poll(async () => (await ctx.holds.state('b')).hold, { timeout: 10_000 }).toBeNull();
    expect((await ctx.holds.state('a')).hold).toMatchObject({ reason: 'unreachable' });
  });

  it('a second run of one call is ended on another', async () => {
    const [hanging, fine] = [await sim(), await sim()];
    const fleet = await fleetOf(hanging, fine);
    const { ctx } = await fleet.daemon({ timing: { ...timing, orphanAfterMs: 500 } });
    await ctx.recent.add('a', 'default.earlier', Date.now());
    hanging.faults.add({ kind: 'hang' });
    await expect.poll(() => hanging.stats().faultsFired.hang ?? 0, { timeout: 10_000 }).toBeGreaterThan(0);
    // The search for such runs on the first one now waits for an answer.
    const input = { search: 'twice', sim: { runSecs: 40, fault: 'double_run' } };
    await fleet.add('twice', { server: 'b', tool: yellowPages, input, deadline: 60 });
    const aborted = () => fine.runs().filter(({ status }) => status === 'ABORTED').length;
    await expect.poll(aborted, { timeout: 15_000 }).toBe(1);
    expect(fine.runs().length).toBe(2);
  });
});

describe('gauges of the fleet', () => {
  it('tell of a server that is held while another one hangs', async () => {
    const [hanging, fine] = [await sim(), await sim()];
    const fleet = await fleetOf(hanging, fine);
    const metrics = createMetrics({ version: 'test', servers });
    const { ctx } = await fleet.daemon({ metrics, timing });
    hanging.faults.add({ kind: 'hang' });
    // The probe of this one now waits a minute for an answer.
    await ctx.holds.holdServer('a', 'unreachable', 'said the test', Date.now());
    await expect.poll(() => hanging.stats().faultsFired.hang ?? 0, { timeout: 10_000 }).toBeGreaterThan(0);
    await ctx.holds.holdServer('b', 'payment', 'said the test', Date.now());
    await expect
      .poll(() => heldSeries(metrics), { timeout: 10_000 })
      .toContain('trawl_server_held{server="b",reason="payment"} 1');
  });

  it('are no longer told by a process that lost its way to Redis', async () => {
    const fleet = await fleetOf(await sim());
    const proxy = await TcpProxy.open(fleet.redis.port);
    closers.push(() => proxy.close());
    const metrics = createMetrics({ version: 'test', servers });
    await fleet.daemon({ metrics, timing, redis: { url: `redis://127.0.0.1:${proxy.port}`, tls: false } });
    await expect.poll(() => inFlightSeries(metrics), { timeout: 10_000 }).toBeGreaterThan(0);
    proxy.stall(1);
    await expect.poll(() => inFlightSeries(metrics), { timeout: 20_000 }).toBe(0);
    proxy.resume();
    await expect.poll(() => inFlightSeries(metrics), { timeout: 20_000 }).toBeGreaterThan(0);
  });
});
