/** Promise 9: the master dies, Sentinel makes its replica the master, and workers go on there by themselves. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue, QueueEvents } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { prepareWorkerProcess, type WorkerProcess } from '../../src/cli/worker-process.js';
import { loadConfig } from '../../src/config.js';
import { createLogger } from '../../src/logger.js';
import { RedisProcess, startSentinel } from '../redis/redis-process.js';
import { type Sim, startSim } from '../sim/index.js';
import { yellowPages } from '../workers/harness.js';
import { input } from './broken.js';

const scrapes = 12;
const dir = mkdtempSync(join(tmpdir(), 'trawl-failover-'));
const closers: (() => unknown)[] = [() => rmSync(dir, { recursive: true })];
let master: RedisProcess;
let replica: RedisProcess;
let sim: Sim;
let worker: WorkerProcess;
let url: string;
let queue: Queue;
let events: QueueEvents;

beforeAll(async () => {
  const settings = ['--hz', '100', '--repl-diskless-sync-delay', '0', '--maxmemory-policy', 'noeviction'];
  master = await RedisProcess.start(...settings);
  replica = await RedisProcess.start(...settings, '--replicaof', '127.0.0.1', String(master.port));
  sim = await startSim({ conditions: { mix: 'fixed' } });
  const copy = new Redis(replica.url);
  closers.push(
    () => master.stop(),
    () => replica.stop(),
    () => sim.close(),
    () => copy.disconnect(),
  );
  await vi.waitFor(
    async () => expect(await copy.info('replication')).toMatch(/master_link_status:up/),
    10_000,
  );
  const sentinel = await startSentinel(master.port);
  closers.push(() => sentinel.stop());
  const group = { name: 'main', hosts: [`127.0.0.1:${sentinel.port}`] };
  const file = join(dir, 'trawl.yaml');
  const limits = { runs: scrapes, requestsPerSecond: 1_000 };
  const servers = { apify: { url: sim.url, token: 'test-token-canary', tools: [yellowPages], limits } };
  writeFileSync(
    file,
    stringify({ redis: { sentinel: group }, poll: { interval: '1s' }, http: { port: 0 }, servers }),
  );
  const config = loadConfig({ file, env: {}, cwd: dir });
  worker = await prepareWorkerProcess({ config, log: createLogger({ level: 'silent' }), intake: true });
  url = await worker.serve();
  await worker.start();
  const connection = {
    sentinels: [{ host: '127.0.0.1', port: sentinel.port }],
    name: 'main',
    maxRetriesPerRequest: null,
  };
  queue = new Queue('scrape', { connection, prefix: config.prefix });
  events = new QueueEvents('scrape', { connection, prefix: config.prefix });
  queue.on('error', () => {});
  events.on('error', () => {});
  events.setMaxListeners(0);
  await events.waitUntilReady();
});

afterAll(async () => {
  await worker?.stop(2_000);
  await events?.close();
  await queue?.close();
  for (const close of closers.reverse()) await close();
});

it('runs under way are seen to their end on the new master, none is started twice', {
  timeout: 90_000,
}, async () => {
  const jobs = Array.from({ length: scrapes }, (_, index) => ({
    name: 'scrape',
    data: { tool: yellowPages, input: input(`s-${index}`, { runSecs: 8, items: 3 }) },
    opts: { jobId: `default.s-${index}` },
  }));
  const added = await queue.addBulk(jobs);
  await vi.waitFor(() => expect(sim.stats().starts).toBe(scrapes), 20_000);
  // Replication does not wait: what the master had not passed on yet is lost with it.
  const writer = new Redis(master.url);
  closers.push(() => writer.disconnect());
  writer.on('error', () => {});
  await writer.set('last', '1');
  expect(await writer.wait(1, 5_000)).toBe(1);
  await master.down();
  await vi.waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(503), {
    timeout: 15_000,
    interval: 50,
  });
  await vi.waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200), {
    timeout: 30_000,
    interval: 200,
  });
  const ended = await Promise.all(added.map((job) => job.waitUntilFinished(events, 60_000)));
  expect(ended.map(({ outcome, items }) => `${outcome} ${items}`)).toEqual(
    Array.from({ length: scrapes }, () => 'succeeded 3'),
  );
  expect(sim.stats().starts).toBe(scrapes);
  const now = new Redis(replica.url);
  closers.push(() => now.disconnect());
  expect((await now.role())[0]).toBe('master');
});
