/** Promise 9: Redis gone for a while, or restarted; workers go on by themselves, `/readyz` says so, producers get an error. */
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { prepareWorkerProcess, type WorkerProcess } from '../../src/cli/worker-process.js';
import { createLogger } from '../../src/logger.js';
import { connectRedis, createRedis, toRedisError } from '../../src/redis/connection.js';
import { Bench } from '../workers/harness.js';
import { backlog, broken, input, tally } from './broken.js';

const log = createLogger({ level: 'silent' });

describe('Redis that goes away', () => {
  let bench: Bench;
  let worker: WorkerProcess;
  let url: string;
  beforeAll(async () => {
    bench = await Bench.open({ limits: { runs: 10 } });
    await bench.client.config('SET', 'maxmemory-policy', 'noeviction');
    worker = await prepareWorkerProcess({ config: bench.config, log, intake: true });
    url = await worker.serve();
    await worker.start();
  });
  afterAll(async () => {
    await worker?.stop(2_000);
    await bench?.close();
  });

  const answers = async (path: string) => (await fetch(`${url}${path}`)).status;

  it('is waited for, frozen or restarted, and everything goes on', { timeout: 58_000 }, async () => {
    await vi.waitFor(async () => expect(await answers('/readyz')).toBe(200), 10_000);
    const ids = await backlog(bench, 40, { runSecs: 1 });
    await vi.waitFor(() => expect(bench.sim.stats().starts).toBeGreaterThanOrEqual(5), 15_000);
    bench.redis.signal('SIGSTOP');
    const frozen = Date.now();
    await vi.waitFor(async () => expect(await answers('/readyz')).toBe(503), { timeout: 8_000 });
    // A restart would not help: the process itself is well.
    expect(await answers('/healthz')).toBe(200);
    await expect(produce()).rejects.toMatchObject({ code: 'redis_unreachable', exitCode: 4 });
    await delay(Math.max(0, 4_000 - (Date.now() - frozen)));
    bench.redis.signal('SIGCONT');
    await vi.waitFor(async () => expect(await answers('/readyz')).toBe(200), { timeout: 10_000 });

    // Its own connection: the others send again what was not answered, this command included.
    const last = new Redis(bench.redis.url, { retryStrategy: () => null });
    await last.call('SHUTDOWN', 'SAVE').catch(() => {});
    await vi.waitFor(async () => expect(await answers('/readyz')).toBe(503), { timeout: 8_000 });
    expect(await answers('/healthz')).toBe(200);
    await expect(produce()).rejects.toMatchObject({ code: 'redis_unreachable' });
    await delay(1_000);
    await bench.redis.up();
    await vi.waitFor(async () => expect(await answers('/readyz')).toBe(200), { timeout: 10_000 });
    expect(await tally(bench, ids, 40_000)).toEqual({ succeeded: 40 });
    expect(bench.sim.stats().starts).toBe(40);
    await vi.waitFor(async () => expect(await slots()).toBe(0), 8_000);
  });

  const slots = () => bench.client.zcard(`${bench.config.prefix}:slots:apify`);

  /** What a producer meets: `trawl submit`, the library. */
  async function produce(): Promise<void> {
    const target = { url: bench.redis.url, tls: false };
    const client = await connectRedis(target, { role: 'producer', log, timeoutMs: 1_000 });
    try {
      await client.ping();
    } catch (error) {
      throw toRedisError(error, target);
    } finally {
      client.disconnect();
    }
  }
});

describe('liveness', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 1 } }, { lockMs: 1_000 });
  });
  afterAll(() => bench?.close());

  it('is the age of the last fetch: fresh when idle and when all hands are full', {
    timeout: 20_000,
  }, async () => {
    const { liveness } = (bench.daemons[0] as Bench['daemons'][number]).ctx;
    const slow = { faults: [{ op: 'start', kind: 'slow', ms: 4_000 }] };
    await bench.add('slow', { input: input('slow', slow) });
    await vi.waitFor(() => expect(bench.sim.ledger.entries({ kind: ['fault'] })).toHaveLength(1), 10_000);
    let oldest = 0;
    for (let look = 0; look < 30; look += 1) {
      await delay(100);
      oldest = Math.max(oldest, Date.now() - (liveness.lastFetch.get('start-apify') ?? 0));
    }
    expect(oldest).toBeLessThan(2_000);
    // Idle queues are asked every 5 s.
    expect(liveness.stalest?.ageMs).toBeLessThan(7_000);
  });

  it('gets old when a worker fetches nothing any more, though its process runs', {
    timeout: 20_000,
  }, async () => {
    const { ctx } = bench.daemons[0] as Bench['daemons'][number];
    const other = createRedis({ url: bench.redis.url, tls: false }, { role: 'worker', log });
    // All but our own connection wait for their answers: what a failover can leave behind.
    await other.call('CLIENT', 'PAUSE', '3500', 'ALL');
    await delay(3_300);
    expect(ctx.liveness.stalest?.ageMs).toBeGreaterThan(2_500);
    other.disconnect();
    await vi.waitFor(() => expect(ctx.liveness.stalest?.ageMs).toBeLessThan(2_500), {
      timeout: 8_000,
      interval: 50,
    });
  });
});
