import { afterEach, expect, test } from 'vitest';
import { loadConfig } from '../../src/config.js';
import { createLogger } from '../../src/logger.js';
import { startTracing } from '../../src/tracing/otlp.js';
import { Collector } from './collector.js';

const collectors: Collector[] = [];
afterEach(async () => {
  for (const collector of collectors.splice(0)) await collector.stop();
});

async function tracing(mode: 'takes' | 'hangs' | 'refuses', extra = '', sendMs?: number) {
  const collector = await Collector.start(mode);
  collectors.push(collector);
  const text = `servers: { apify: { token: canary-token, tools: [a/b] } }
traces: { endpoint: "${collector.url}", headers: "x-key=canary%20key" ${extra} }`;
  const lines: string[] = [];
  const log = createLogger({ level: 'warn', destination: { write: (line) => lines.push(line) } });
  return { collector, lines, tracing: startTracing(loadConfig({ text, env: {}, cwd: '/' }), log, sendMs) };
}

test('spans arrive with the headers, within the step alone, and no secret', async () => {
  const { collector, tracing: traces } = await tracing('takes');
  expect(await traces.span('mcp list_tools', {}, async () => 1)).toBe(1);
  const { metadata } = traces.submitted({ scrapeId: 'b.i', tool: 'canary-token', none: null }) ?? {};
  await traces.close();
  expect(collector.headers['x-key']).toBe('canary key');
  expect(collector.spans.map(({ name, attributes }) => ({ name, attributes }))).toEqual([
    { name: 'submit', attributes: { scrapeId: 'b.i', tool: '[secret]' } },
  ]);
  const [span] = collector.spans;
  expect(metadata).toBe(`{"traceparent":"00-${span?.traceId}-${span?.spanId}-01"}`);
  expect(collector.raw).not.toContain('canary');
});

test('ratio 0 makes no trace, and the jobs say so', async () => {
  const { collector, tracing: traces } = await tracing('takes', ', ratio: 0');
  expect(traces.submitted({})?.metadata).toMatch(/-00"}$/);
  expect(traces.contextOf({ id: 'b.i', timestamp: 1, taken: 1 })).toMatch(/-00"}$/);
  await traces.close();
  expect(collector.requests).toBe(0);
});

test.each(['hangs', 'refuses'] as const)(
  'a collector that %s costs neither time nor memory',
  async (mode) => {
    const { collector, tracing: traces } = await tracing(mode);
    const spans = 50_000;
    const began = performance.now();
    for (let made = 0; made < spans; made += 1) {
      traces.submitted({ scrapeId: `b.${made}` });
      if (made % 5_000 === 0) await new Promise(setImmediate);
    }
    // A span takes some microseconds; waiting for the collector even once in a thousand would be far above this.
    expect((performance.now() - began) / spans).toBeLessThan(1);
    const closing = performance.now();
    await traces.close();
    expect(performance.now() - closing).toBeLessThan(10_000);
    // What waited was bounded, so that most of it was never sent: 50,000 are 98 batches.
    expect(collector.requests).toBeLessThan(50);
  },
);

test('that traces are lost is said, and not with each batch', async () => {
  const { lines, tracing: traces } = await tracing('hangs', '', 100);
  const tell = async () => {
    for (let made = 0; made < 1_200; made += 1) traces.submitted({});
    await new Promise((resolve) => setTimeout(resolve, 300));
  };
  while (lines.length === 0) await tell();
  await tell();
  await traces.close();
  expect(lines.map((line) => JSON.parse(line).event)).toEqual(['traces.lost']);
});
