/**
 * Promise 6 with the spans of the product: the slots a killed process had reserved or bound come back within 30 s. Takes
 * half a minute by its nature.
 */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Bench } from '../workers/harness.js';
import { input } from './broken.js';
import { killed, spawnWorker } from './children.js';

let bench: Bench;
beforeAll(async () => {
  bench = await Bench.open({ limits: { runs: 3 }, config: { start: { timeout: '60s' } } });
});
afterAll(() => bench?.close());

it('gives the slots of a killed process back within 30 s', { timeout: 90_000 }, async () => {
  const hanging = { faults: [{ op: 'start', kind: 'hang' }] };
  await Promise.all(['a', 'b', 'c'].map((id) => bench.add(id, { input: input(id, hanging) })));
  const child = await spawnWorker(bench, {});
  const slots = `${bench.config.prefix}:slots:apify`;
  await vi.waitFor(async () => {
    expect(bench.sim.ledger.entries({ kind: ['fault'] })).toHaveLength(3);
    expect(await bench.client.zcard(slots)).toBe(3);
  }, 15_000);
  await killed(child);
  const died = Date.now();
  // What a worker sees that asks for a slot: those that have expired are nobody's.
  const held = async () => bench.client.zcount(slots, Date.now(), '+inf');
  expect(await held()).toBe(3);
  await vi.waitFor(async () => expect(await held()).toBe(0), { timeout: 31_000, interval: 100 });
  expect(Date.now() - died).toBeLessThanOrEqual(30_500);
});
