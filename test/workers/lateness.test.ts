import { expect, it } from 'vitest';
import { createMetrics } from '../../src/metrics/index.js';
import { Bench, yellowPages } from './harness.js';

it('measures how late a poll is from when it was due, not from the first', async () => {
  const bench = await Bench.open();
  try {
    const metrics = createMetrics({ version: 'test', servers: { apify: { tools: [yellowPages] } } });
    await bench.daemon({ metrics });
    await bench.add('long', { input: { sim: { runSecs: 9, items: 1 } } });
    await bench.outcome('long');
    const lines = (await metrics.text()).split('\n');
    const polls = (le: string) => {
      const line = lines.find(
        (each) => each.startsWith('trawl_poll_lateness_seconds_bucket') && each.includes(`le="${le}"`),
      );
      return Number(line?.split(' ').at(-1));
    };
    expect(polls('+Inf')).toBeGreaterThan(4);
    expect(polls('5')).toBe(polls('+Inf'));
  } finally {
    await bench.close();
  }
});
