import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Bench } from './harness.js';

let bench: Bench;
beforeAll(async () => {
  bench = await Bench.open();
  await bench.daemon();
});
afterAll(() => bench.close());

const input = (sim: Record<string, unknown>) => ({ search: 'plumber', location: 'Austin, TX', sim: { runSecs: 0.5, readySecs: 0, ...sim } });

describe('a scrape from the queue to the disk', () => {
  it('succeeds: started once, polled, paged, settled', async () => {
    await bench.add('ok', { input: input({ items: 37, itemBytes: 300, usageUsd: 0.01 }) });
    const outcome = await bench.outcome('ok');
    expect(outcome).toMatchObject({ outcome: 'succeeded', items: 37, pages: 1, attempt: 1, runStatus: 'SUCCEEDED' });
    const dir = bench.resultsOf('ok');
    const lines = readFileSync(join(dir, 'page-000000.ndjson'), 'utf8').trimEnd().split('\n');
    expect(lines).toHaveLength(37);
    expect(JSON.parse(readFileSync(join(dir, 'outcome.json'), 'utf8'))).toEqual(outcome);
    expect(readdirSync(dir).filter((name) => name.startsWith('page-'))).toHaveLength(1);
  });
});
