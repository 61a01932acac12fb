import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { catalogue, findActor, type Sim, startSim } from '../sim/index.js';
import { planRun, type RunPlan } from '../sim/plan.js';
import { seeded } from '../sim/random.js';
import { RawClient } from './client.js';

const maps = 'compass/crawler-google-places';
let sim: Sim;
let client: RawClient;
beforeAll(async () => {
  sim = await startSim({ conditions: { mix: 'fixed' } });
});
beforeEach(async () => {
  sim.reset({ sessions: true });
  client = await RawClient.connect(sim.url, { tools: 'call-actor' });
});
afterAll(() => sim.close());

const page = async (datasetId: string, args: object = {}) =>
  (await client.call('get-dataset-items', { datasetId, limit: 1000, ...args })).result.structuredContent;

describe('items', () => {
  it('are the same however they are cut into pages, each with its index and run', async () => {
    const runId = await client.start(maps, { sim: { runSecs: 0, items: 37 } });
    const whole = (await page(`ds${runId}`)).items;
    const cut = [];
    for (let offset = 0; offset < 37; offset += 15)
      cut.push(...(await page(`ds${runId}`, { offset, limit: 15 })).items);
    expect(cut).toEqual(whole);
    expect(whole.map((item: { _i: number }) => item._i)).toEqual(Array.from({ length: 37 }, (_, i) => i));
    expect(new Set(whole.map((item: { _run: string }) => item._run))).toEqual(new Set([runId]));
    const reversed = (await page(`ds${runId}`, { desc: true, limit: 3 })).items;
    expect(reversed).toEqual(whole.slice(-3).reverse());
  });

  it.each([100, 300, 1000, 10_000, 160_000])(
    'keep near the size that was asked for: %d bytes',
    async (itemBytes) => {
      for (const { name } of catalogue) {
        const required = name.startsWith('acme') ? { location: 'x' } : { startUrls: [], query: 'q' };
        const input = { ...required, sim: { runSecs: 0, items: 3, itemBytes } };
        const { items } = await page(`ds${await client.start(name, input)}`);
        const sizes = items.map((item: unknown) => Buffer.byteLength(JSON.stringify(item)));
        for (const size of sizes) {
          expect(size, name).toBeLessThan(itemBytes * 1.1 + 120);
          expect(size, name).toBeGreaterThan(itemBytes * 0.9 - 10);
        }
      }
    },
  );

  it('can be projected, cleaned and flattened', async () => {
    const runId = await client.start('acme/yellowpages-scraper', {
      location: 'x',
      sim: { runSecs: 0, items: 2 },
    });
    const id = `ds${runId}`;
    expect((await page(id, { fields: 'name,idx' })).items[1]).toEqual({ name: 'Plumber 1', idx: 1 });
    expect((await page(id, { clean: true })).items[0]).not.toHaveProperty('#debug');
    expect((await page(id, { omit: '_run,_i,#debug' })).items[0]).toEqual({
      idx: 0,
      name: 'Plumber 0',
      phone: '512-000-0',
    });
    const place = `ds${await client.start(maps, { sim: { runSecs: 0, items: 1 } })}`;
    expect((await page(place, { fields: 'location.lat' })).items[0]).toEqual({ 'location.lat': 30.2672 });
    expect((await page(place, { flatten: 'location' })).items[0]['location.lng']).toBe(-97.7431);
  });

  it('hold error rows first when asked for', async () => {
    const runId = await client.start(maps, { sim: { runSecs: 0, items: 5, errorRows: 3 } });
    const { items } = await page(`ds${runId}`);
    expect(items[0]).toMatchObject({ _i: 0, error: 'blocked' });
    expect(items[1].status).toBe('no_data');
    expect(items[2]['#error']).toBe(true);
    expect(items[3]).toHaveProperty('title');
  });

  it('are big where the Actor is: places with reviews', async () => {
    const runId = await client.start(maps, { maxReviews: 200, sim: { runSecs: 0, items: 1 } });
    const { items } = await page(`ds${runId}`);
    expect(JSON.stringify(items[0]).length).toBeGreaterThan(130_000);
    expect(items[0].reviews[0].stars).toBe(5);
  });

  it('stand escaped when the input is hostile', async () => {
    const hostile = '"}]\u0000\u001b[31m\u2028__proto__';
    const runId = await client.start(maps, { searchStringsArray: [hostile], sim: { runSecs: 0, items: 1 } });
    expect((await page(`ds${runId}`)).items[0].searchString).toBe(hostile);
  });
});

describe('the seed', () => {
  const night = async (seed: number) => {
    const other = await startSim({ seed, speed: 1000 });
    const starter = await RawClient.connect(other.url, { tools: 'call-actor' });
    for (let i = 0; i < 25; i++) await starter.start('trudax/yellow-pages-us-scraper', { search: 'x' });
    const runs = other.runs().map(({ startedAt, endAt, items }) => [endAt - startedAt, items]);
    await other.close();
    return runs;
  };
  it('gives the same runs again, and another seed others', async () => {
    const first = await night(7);
    expect(await night(7)).toEqual(first);
    expect(await night(8)).not.toEqual(first);
  });

  it('draws a good night and a bad one as the contract has them', () => {
    const tool = findActor('trudax/yellow-pages-us-scraper');
    if (tool === null) throw new Error('the store lost an Actor');
    const random = seeded(1);
    const night = (mix: 'good-night' | 'bad-night') =>
      Array.from({ length: 3000 }, () =>
        planRun({
          actor: tool,
          input: { search: 'x', maxItems: 90 },
          options: {},
          steering: {},
          conditions: { ...sim.conditions, mix, badTool: tool.name },
          speed: 1,
          random,
          upMs: 61_000,
        }),
      );
    const share = (plans: RunPlan[], is: (plan: RunPlan) => boolean) =>
      plans.filter(is).length / plans.length;
    const good = night('good-night');
    expect(share(good, ({ status, items }) => status === 'SUCCEEDED' && items > 0)).toBeCloseTo(0.88, 1);
    expect(share(good, ({ status, items }) => status === 'SUCCEEDED' && items === 0)).toBeCloseTo(0.05, 1);
    expect(share(good, ({ status, items }) => status === 'FAILED' && items > 0)).toBeCloseTo(0.03, 1);
    expect(share(good, ({ status }) => status === 'TIMED-OUT')).toBeCloseTo(0.01, 1);
    expect(share(good, ({ lagMs }) => lagMs > 0)).toBeCloseTo(1 / 3, 1);
    const ran = good
      .filter(({ status }) => status !== 'TIMED-OUT')
      .map(({ totalMs, readyMs }) => totalMs - readyMs);
    expect((ran.sort((a, b) => a - b)[Math.floor(ran.length / 2)] ?? 0) / 1000).toBeCloseTo(35, -1);
    const outside = good.filter(
      ({ readyMs, lagMs, items, status }) =>
        readyMs < 2000 ||
        readyMs > 12_000 ||
        lagMs > 5000 ||
        items > 90 ||
        (status === 'SUCCEEDED' && items > 0 && items < 30),
    );
    expect(outside).toEqual([]);
    const bad = night('bad-night');
    expect(share(bad, ({ status, items }) => status !== 'SUCCEEDED' || items === 0)).toBeGreaterThan(0.5);
  });
});
