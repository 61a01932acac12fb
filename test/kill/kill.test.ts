import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { Keys } from '../../src/queue/names.js';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import type { Daemon } from '../../workers/daemon.js';
import { readTold, wrongEvents } from '../chaos/events.js';
import { readJobs, readLeftovers, readScrape } from '../chaos/evidence.js';
import { RedisProcess } from '../redis/redis-process.js';
import { type Sim, startSim } from '../sim/index.js';
import { openDaemon } from './host.js';
import { type KillPoint, killPoints, type Moment } from './points.js';
import type { VictimCase } from './victim.js';

const tool = 'trudax/yellow-pages-us-scraper';
const times = ['once', 'twice'] as const;

interface Case extends KillPoint {
  readonly id: string;
  readonly twice: boolean;
  readonly prefix: string;
  readonly config: string;
  readonly results: string;
}

let redis: RedisProcess;
let client: Redis;
let sim: Sim;
const dir = mkdtempSync(join(tmpdir(), 'trawl-kill-'));
const daemons: Daemon[] = [];

const cases: readonly Case[] = killPoints.flatMap((point, index) =>
  times.map((time) => {
    const id = `p${index}-${time}`;
    const home = join(dir, id);
    return {
      ...point,
      id,
      twice: time === 'twice',
      prefix: `{${id}}`,
      config: join(home, 'trawl.yaml'),
      results: join(home, 'results'),
    };
  }),
);

beforeAll(async () => {
  [redis, sim] = await Promise.all([
    RedisProcess.start('--hz', '100'),
    startSim({ conditions: { mix: 'fixed' } }),
  ]);
  client = new Redis(redis.url, { maxRetriesPerRequest: null });
  for (const { id, prefix, config, results, job } of cases) {
    mkdirSync(join(dir, id));
    const apify = {
      url: sim.url,
      token: 'kill-token',
      tools: [tool],
      limits: { runs: 2, requestsPerSecond: 500 },
    };
    writeFileSync(
      config,
      stringify({
        redis: { url: redis.url },
        prefix,
        servers: { apify },
        poll: { interval: '1s' },
        results: { dir: results, pageBytes: 4_096 },
      }),
    );
    const input = { search: id, location: 'Austin, TX', ...(job.input as object) };
    const queue = new Queue('scrape', { connection: client, prefix, skipVersionCheck: true });
    await queue.add('scrape', { tool, ...job, input }, { jobId: `default.${id}` });
  }
  // All die at their moments in the one process; then those that are to die again do so in another.
  await killAt(cases.map(({ config, first }) => ({ config, moment: first })));
  const finish = (some: readonly Case[]) => Promise.all(some.map(({ config }) => startDaemon(config)));
  const twice = cases.filter((one) => one.twice);
  await Promise.all([
    finish(cases.filter((one) => !one.twice)),
    killAt(twice.map(({ config, first, second }) => ({ config, moment: again(first, second) }))).then(() =>
      finish(twice),
    ),
  ]);
  await settled();
}, 150_000);

afterAll(async () => {
  await Promise.all(daemons.map((daemon) => daemon.stop(1_000)));
  client.disconnect();
  await Promise.all([sim.close(), redis.stop()]);
  rmSync(dir, { recursive: true, force: true });
}, 30_000);

describe.each(times)('a worker killed %s', (time) => {
  it.each(cases.filter(({ id }) => id.endsWith(time)).map((one) => [one.name, one] as const))(
    '%s',
    async (_name, { id, prefix, results, expected }) => {
      const keys = new Keys(prefix);
      const key = `default.${id}`;
      const { outcome, items, pages } = await readScrape(join(results, 'batch=default', `scrape=${id}`));
      expect(outcome).toMatchObject(expected);
      // One run, and it is the one whose items are here, each once and in order.
      const runs = sim.ledger.starts().filter(({ input }) => input?.includes(`"search":"${id}"`));
      expect(runs.map(({ runId }) => runId)).toEqual([outcome?.runId]);
      expect(items).toEqual(
        Array.from({ length: items.length }, (_, index) => ({ index, run: outcome?.runId })),
      );
      expect({ items: items.length, pages }).toEqual({ items: outcome?.items, pages: outcome?.pages });
      expect(sim.runs().find(({ runId }) => runId === outcome?.runId)).toMatchObject({
        final: true,
        readable: items.length,
      });
      // Settled once, everywhere, and each start and page told of once.
      const told = (await readTold(client, keys)).get(key) ?? [];
      expect(told.filter((label) => label === 'scrape.settled')).toHaveLength(1);
      expect(wrongEvents(told, outcome as OutcomeDocument)).toEqual([]);
      expect(await client.hgetall(keys.batch('default'))).toMatchObject({ submitted: '1', settled: '1' });
      const job = (await readJobs(client, keys, [key])).get(key);
      expect(job).toMatchObject({ finished: true, progress: outcome });
      // Nothing held, nothing left.
      expect(await client.zrange(keys.slots('apify'), '0', '-1')).toEqual([]);
      expect(await readLeftovers(client, keys)).toEqual([]);
    },
  );
});

function again(first: Moment, second: Moment | undefined): Moment {
  return second ?? { ...first, nth: 1 };
}

/** Runs the victim to its death, and fails when it dies of anything else, or some never come to their moment. */
async function killAt(victims: readonly VictimCase[]): Promise<void> {
  const entry = fileURLToPath(new URL('victim.ts', import.meta.url));
  const child: ChildProcess = spawn(process.execPath, ['--import', 'tsx', entry, JSON.stringify(victims)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const missing = new Set(victims.map(({ config }) => config));
  child.on('message', (message) => missing.delete((message as { reached: string }).reached));
  const timer = setTimeout(() => child.kill('SIGTERM'), 60_000);
  const [, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  clearTimeout(timer);
  if (signal !== 'SIGKILL') throw new Error(`never at their moment: ${[...missing].join(', ')}`);
}

async function startDaemon(config: string): Promise<void> {
  const { daemon } = openDaemon(config);
  daemons.push(daemon);
  await daemon.start();
}

/** Every public job has ended, and its slot is back. */
async function settled(): Promise<void> {
  const until = Date.now() + 45_000;
  while (Date.now() < until) {
    const open = await Promise.all(
      cases.map(async ({ id, prefix }) => {
        const keys = new Keys(prefix);
        const key = `default.${id}`;
        const ended = (await readJobs(client, keys, [key])).get(key)?.finished ?? false;
        return !ended || (await client.zcard(keys.slots('apify'))) > 0;
      }),
    );
    if (!open.includes(true)) return;
    await delay(250);
  }
}
