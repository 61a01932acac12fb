/** Promise 7: a held tool and its jobs; refusals that nobody knows. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Bench, maps, yellowPages } from '../workers/harness.js';
import { backlog, broken, gauge, input, mapsInput, said, tally } from './broken.js';

/** Counts how often each start job is put into a worker's hands. */
async function countTakes(bench: Bench): Promise<() => Promise<number[]>> {
  const taken = new Map<string, number>();
  return async () => {
    const stream = `${bench.config.prefix}:start-apify:events`;
    const events = await bench.client.xrange(stream, '-', '+');
    taken.clear();
    for (const [, fields] of events) {
      const entry = Object.fromEntries(
        Array.from({ length: fields.length / 2 }, (_, index) => [fields[2 * index], fields[2 * index + 1]]),
      );
      if (entry.event === 'active') taken.set(entry.jobId, (taken.get(entry.jobId) ?? 0) + 1);
    }
    return [...taken.values()];
  };
}

describe('a held tool', () => {
  let bench: Bench;
  let held: string[];
  let takes: () => Promise<number[]>;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 4 } });
    await bench.client.hset(`${bench.config.prefix}:start-apify:meta`, 'opts.maxLenEvents', '100000');
    takes = await countTakes(bench);
    bench.sim.set({ refusals: { [yellowPages]: 'not_rented' } });
    held = await backlog(bench, 40);
  });
  afterAll(() => bench?.close());

  it('lets the other tool go on', { timeout: 30_000 }, async () => {
    await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        bench.add(`maps-${index}`, { tool: maps, input: mapsInput(`maps-${index}`) }),
      ),
    );
    const ids = Array.from({ length: 12 }, (_, index) => `maps-${index}`);
    expect(await tally(bench, ids, 25_000)).toEqual({ succeeded: 12 });
    expect(said(bench, 'tool.held')).toMatchObject([
      { level: 'error', server: 'apify', tool: yellowPages, reason: 'payment' },
    ]);
    await expect
      .poll(() => gauge(bench, 'trawl_tool_held'), { timeout: 5_000, interval: 300 })
      .toMatchObject({ [`{server="apify",tool="${yellowPages}",reason="payment"}`]: 1 });
    expect(said(bench, 'server.held')).toEqual([]);
  });

  it('sets its jobs aside instead of passing them round', async () => {
    const { ctx } = bench.daemons[0] as Bench['daemons'][number];
    // All but the one that is on trial at the moment.
    await expect.poll(() => ctx.holds.parkedCount('apify'), { timeout: 10_000 }).toBeGreaterThanOrEqual(39);
    const counts = await takes();
    const maximum = Math.max(...counts);
    const starts = counts.reduce((sum, count) => sum + count, 0);
    // Once to be set aside; one more for each trial, of which there are few.
    expect(maximum).toBeLessThanOrEqual(12);
    expect(starts).toBeLessThanOrEqual(40 + 12 + 20);
  });

  it('goes on by itself when it works again', { timeout: 40_000 }, async () => {
    bench.sim.set({ refusals: {} });
    expect(await tally(bench, held, 35_000)).toEqual({ succeeded: 40 });
    expect(said(bench, 'tool.released')).toMatchObject([{ tool: yellowPages }]);
    expect(bench.sim.stats().starts).toBe(52);
    const { ctx } = bench.daemons[0] as Bench['daemons'][number];
    expect(await ctx.holds.parkedCount('apify')).toBe(0);
  });
});

describe('refusals that nobody knows', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 12 } });
  });
  afterAll(() => bench?.close());

  it('reject one scrape alone', { timeout: 30_000 }, async () => {
    await bench.add('odd', { input: input('odd', { refuse: 'unknown' }) });
    const others = await backlog(bench, 8);
    const odd = await bench.outcome('odd', 20_000);
    expect(odd).toMatchObject({ outcome: 'rejected', runId: null });
    expect(odd.message).toMatch(/nobody has written down/);
    expect(await tally(bench, others, 20_000)).toEqual({ succeeded: 8 });
    expect(said(bench, 'tool.held')).toEqual([]);
  });

  it('hold the tool when five meet them in a row, and put those back', { timeout: 40_000 }, async () => {
    bench.sim.set({ refusals: { [yellowPages]: 'unknown' } });
    const ids = await backlog(bench, 12, {}, { prefix: 'five' });
    await expect
      .poll(() => said(bench, 'tool.held'), { timeout: 10_000 })
      .toMatchObject(
        [{ level: 'error', tool: yellowPages, reason: 'brake', message: /^Five scrapes in a row/ }].map(
          ({ message, ...line }) => ({ ...line, message: expect.stringMatching(message) }),
        ),
      );
    // Also past the wait after which one alone is rejected, and past several trials.
    const { ctx } = bench.daemons[0] as Bench['daemons'][number];
    const refused = bench.sim.stats().refused;
    await expect
      .poll(() => bench.sim.stats().refused, { timeout: 10_000 })
      .toBeGreaterThanOrEqual(refused + 2);
    expect((await ctx.holds.state('apify')).tools[yellowPages]?.hold).toMatchObject({ reason: 'brake' });
    bench.sim.set({ refusals: {} });
    expect(await tally(bench, ids, 30_000)).toEqual({ succeeded: 12 });
    expect(said(bench, 'tool.released')).toHaveLength(1);
  });
});
