import { spawnSync } from 'node:child_process';
import { afterEach, expect, it } from 'vitest';
import { createHttpServer } from '../../src/http/server.js';
import { createMetrics } from '../../src/metrics/index.js';
import type { Daemon } from '../../workers/daemon.js';
import { Bench, maps, yellowPages } from './harness.js';

let bench: Bench;
afterEach(() => bench?.close());

const fleetGauges =
  /^trawl_(queue_jobs|queue_oldest_age|runs_in_flight|run_slots|server_up|server_held|redis_memory)/m;
const tells = async ({ ctx }: Daemon) => fleetGauges.test(await ctx.metrics.text());

async function until(ask: () => Promise<boolean>): Promise<void> {
  while (!(await ask())) await new Promise((resolve) => setTimeout(resolve, 50));
}

it('fleet gauges come from one process: never from two, and from the next when it stops', async () => {
  bench = await Bench.open();
  const timing = { sweepEveryMs: 100 };
  const first = await bench.daemon({ timing });
  await until(() => tells(first));
  const second = await bench.daemon({ timing });
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await tells(second)).toBe(false);
  await first.stop(1_000);
  expect(await tells(first)).toBe(false);
  await until(() => tells(second));
});

it('a process that is cut off from Redis stops saying how the fleet is', async () => {
  bench = await Bench.open();
  const daemon = await bench.daemon({ timing: { sweepEveryMs: 100 } });
  await until(() => tells(daemon));
  bench.redis.signal('SIGSTOP');
  try {
    // Its lease is over after 10 s.
    await until(async () => !(await tells(daemon)));
  } finally {
    bench.redis.signal('SIGCONT');
  }
  await until(() => tells(daemon));
}, 60_000);

it('what a real worker serves has nothing that promtool takes offence at', async () => {
  bench = await Bench.open();
  const metrics = createMetrics({
    version: 'test',
    servers: { apify: { tools: [yellowPages, maps] } },
    process: true,
  });
  const daemon = await bench.daemon({ metrics, timing: { sweepEveryMs: 100 } });
  await bench.add('a', { input: { sim: { runSecs: 0.1, items: 3 } } });
  await bench.add('b', { input: { sim: { runSecs: 0.1, faults: [{ op: 'poll', kind: 'rpc_internal' }] } } });
  await Promise.all([bench.outcome('a'), bench.outcome('b')]);
  await until(() => tells(daemon));
  const well = { check: async () => ({ ok: true, checks: {} }) };
  const health = { live: well, ready: well };
  const server = await createHttpServer({ host: '127.0.0.1', port: 0, metrics, health, log: daemon.ctx.log });
  try {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    expect(text).toMatch(/^trawl_scrapes_settled_total\{.*outcome="succeeded"} 2$/m);
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text });
    expect(`${stdout}${stderr}`).toBe('');
    expect(status).toBe(0);
  } finally {
    await server.close();
  }
});
