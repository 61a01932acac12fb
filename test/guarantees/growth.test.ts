/**
 * Promise 12: with a short retention Redis comes back to the keys it had. `npm run bench -- growth` does the same with
 * 20,000 scrapes.
 */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Bench, yellowPages } from '../workers/harness.js';
import { backlog, broken, input } from './broken.js';

let bench: Bench;
beforeAll(async () => {
  bench = await broken(
    {
      limits: { runs: 60 },
      config: { keep: { settled: '2s', failed: '3s' }, retry: { backoff: '1s' }, brake: { action: 'warn' } },
    },
    { claimAfterMs: 2_000 },
  );
});
afterAll(() => bench?.close());

/** Scrapes of all sorts of ends, each in a batch of its own kind. */
async function addMixed(prefix: string, count: number): Promise<void> {
  const each = Math.ceil(count / 6);
  const job = (kind: string) => ({ prefix: `${prefix}-${kind}` });
  await backlog(bench, each, { runSecs: 0.2 }, job('ok'));
  await backlog(bench, each, { runSecs: 0.2, items: 0 }, job('empty'));
  await backlog(bench, each, { runSecs: 0.2, status: 'FAILED', items: 0 }, { ...job('failed'), retries: 1 });
  await backlog(bench, each, { refuse: 'bad_input' }, job('rejected'));
  await backlog(bench, each, { runSecs: 0.2 }, { ...job('expired'), expiresIn: 0.001 });
  const odd = Array.from({ length: each }, (_, index) => `${prefix}-odd-${index}`);
  await bench.queue.addBulk(
    odd.map((id) => ({
      name: 'scrape',
      data: { tool: `nobody/${id}`, batch: prefix, input: input(id) },
      opts: { jobId: id },
    })),
  );
  await bench.client.xadd(
    `${bench.config.prefix}:intake`,
    '*',
    'job',
    JSON.stringify({ tool: yellowPages, id: `${prefix}-in`, input: input('x') }),
  );
}

async function keys(): Promise<number> {
  return bench.client.dbsize();
}

/** All settled, and all of that forgotten. */
async function forgotten(): Promise<void> {
  const counts = () =>
    bench.queue.getJobCounts(
      'waiting',
      'active',
      'delayed',
      'prioritized',
      'waiting-children',
      'completed',
      'failed',
    );
  await vi.waitFor(
    async () => expect(Object.values(await counts()).reduce((sum, count) => sum + count, 0)).toBe(0),
    { timeout: 40_000, interval: 200 },
  );
  const own = `${bench.config.prefix}:`;
  await vi.waitFor(
    async () => {
      const left = await bench.client.keys(`${own}*`);
      expect(left.filter((key) => /:(attempt|claim|batch|waiting):/.test(key))).toEqual([]);
    },
    { timeout: 10_000, interval: 200 },
  );
}

it('is where it began after hundreds of scrapes', { timeout: 100_000 }, async () => {
  await addMixed('warm', 12);
  await forgotten();
  const before = await keys();
  await addMixed('many', 300);
  await vi.waitFor(async () => expect(await keys()).toBeGreaterThan(before * 3), {
    timeout: 20_000,
    interval: 50,
  });
  await forgotten();
  const after = await keys();
  expect(after).toBeLessThanOrEqual(before * 1.05);
});
