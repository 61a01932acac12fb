import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.js';
import { createLogger } from '../../src/logger.js';
import { createMetrics } from '../../src/metrics/index.js';
import { createFileSink } from '../../src/sinks/file.js';
import { Daemon } from '../../workers/daemon.js';
import { RedisProcess } from '../redis/redis-process.js';
import { type Sim, startSim } from '../sim/index.js';
import { Folder, places, yellowPages } from './setup.js';

let sim: Sim;
let redis: RedisProcess;
let folder: Folder;
let daemon: Daemon;

beforeAll(async () => {
  [sim, redis] = await Promise.all([
    startSim({ conditions: { mix: 'fixed' } }),
    RedisProcess.start('--hz', '100'),
  ]);
  const server = { url: sim.url, token: 'simulated', limits: { runs: 5, requestsPerSecond: 100 } };
  folder = new Folder({ apify: { ...server, tools: [yellowPages, places] } }, { redis: { url: redis.url } });
});
afterAll(async () => {
  await daemon?.stop(1_000);
  await sim?.close();
  await redis?.stop();
  folder?.remove();
});

async function startDaemon(): Promise<void> {
  const config = loadConfig({ env: {}, cwd: folder.path });
  daemon = new Daemon({
    config,
    redis: config.redis,
    sink: createFileSink({ dir: config.results.dir, gzip: false }),
    metrics: createMetrics({ version: 'test', servers: { apify: { tools: [yellowPages, places] } } }),
    log: createLogger({ level: 'silent' }),
    intake: false,
  });
  await daemon.start();
}

const json = async (...args: string[]) => JSON.parse((await folder.trawl(...args, '--json')).out);

/** Asks again until the answer is right; the test's own time limit ends it. */
async function until(ask: () => Promise<boolean>): Promise<void> {
  while (!(await ask())) await new Promise((resolve) => setTimeout(resolve, 100));
}

describe('commands on a fleet, in the order of a day', () => {
  it('submit says what is new and what is known, and that nobody works', async () => {
    folder.jobs('day.ndjson', [
      { id: 'slow', input: { sim: { runSecs: 600 } } },
      { id: 'sad', input: { sim: { runSecs: 0.1, status: 'FAILED', items: 2 } } },
      { id: 'shared', tool: places, input: { sim: { runSecs: 0.1, items: 2 } } },
    ]);
    const first = await folder.trawl('submit', 'day.ndjson');
    expect(first).toMatchObject({ code: 0, out: 'Submitted 3 scrapes to batch day.\n' });
    expect(first.err).toBe('No worker is running. Start one: trawl work\n');
    expect(await json('submit', 'day.ndjson')).toEqual({
      submitted: 0,
      known: 3,
      settled: 0,
      batches: ['day'],
    });
    folder.jobs('other.ndjson', [{ id: 'shared', input: { sim: { runSecs: 600 } } }]);
    expect((await folder.trawl('submit', 'other.ndjson')).code).toBe(0);
  });

  it('plan counts what waits and spends nothing', async () => {
    expect(await json('plan', 'day.ndjson')).toMatchObject({ waiting: 3, settled: 0, underWay: 0 });
    expect(sim.ledger.count('start')).toBe(0);
  });

  it('status names a batch that no worker has looked at', async () => {
    const { code, err } = await folder.trawl('status', '--batch', 'day');
    expect(code).toBe(2);
    expect(err).toContain('Batch day was submitted, and no worker has looked at it yet.');
    expect((await folder.trawl('status', 'day.slow')).out).toMatch(
      /^state +submitted, no worker has looked/m,
    );
  });

  it('a paused tool starts nothing until it is resumed, and says so', async () => {
    expect((await folder.trawl('pause', `apify/${places.replace('/', '--')}`)).out).toContain(
      `Paused apify/${places}.`,
    );
    expect((await folder.trawl('pause', `apify/${places}`)).out).toContain('is paused already');
    await startDaemon();
    await until(async () => (await json('status')).servers[0].parked === 1);
    const { out } = await folder.trawl('status');
    expect(out).toMatch(new RegExp(`^ +apify/${places}: paused since`, 'm'));
    expect(out).not.toContain('No worker is running');
    expect((await folder.trawl('resume', `apify/${places}`)).out).toBe(`Resumed apify/${places}.\n`);
    expect((await folder.trawl('resume', `apify/${places}`)).out).toContain('is not paused');
    await until(async () => (await json('status', 'day.shared')).outcome?.outcome === 'succeeded');
  });

  it('status shows a scrape under way and a settled one, and an id that two batches have is asked about', async () => {
    const slow = await folder.trawl('status', 'slow');
    expect(slow.out).toMatch(/^scrape +day\.slow\nstate +running \((READY|RUNNING)\)/);
    expect((await folder.trawl('status', 'shared', '--batch', 'day')).out).toMatch(/^state +succeeded/m);
    const both = await folder.trawl('status', 'shared');
    expect(both.code).toBe(2);
    expect(both.err).toMatch(/"shared" names 2 scrapes: (day|other)\.shared, (day|other)\.shared\./);
    expect((await folder.trawl('status', 'nobody')).err).toContain('No scrape "nobody" is known.');
  });

  it('retry starts the next attempt of a failed scrape, and pays for nothing else', async () => {
    await until(async () => (await json('status', 'day.sad')).outcome?.outcome === 'failed');
    const before = sim.ledger.count('start');
    expect((await folder.trawl('retry', 'shared', '--batch', 'day')).out).toContain(
      'nothing is paid for again',
    );
    expect((await folder.trawl('retry', 'slow')).out).toContain('day.slow is under way');
    expect((await folder.trawl('retry', 'sad')).out).toBe('Trying day.sad again: attempt 2.\n');
    await until(async () => sim.ledger.count('start') > before);
    expect(sim.ledger.count('start')).toBe(before + 1);
  });

  it('cancel ends one scrape, or all of a batch, and aborts runs', async () => {
    expect((await folder.trawl('cancel', 'shared', '--batch', 'day')).out).toContain(
      'is settled already (succeeded)',
    );
    expect((await folder.trawl('cancel', 'slow')).out).toBe('Cancelling day.slow; its run is aborted.\n');
    expect((await folder.trawl('cancel', '--batch', 'nothing')).err).toContain(
      'No batch "nothing" is known.',
    );
    expect((await folder.trawl('cancel', '--batch', 'other')).out).toMatch(
      /^Cancelling batch other: 1 scrape reached/,
    );
    for (const key of ['day.slow', 'other.shared']) {
      await until(async () => (await json('status', key)).outcome?.outcome === 'cancelled');
    }
    expect(sim.ledger.count('abort')).toBeGreaterThanOrEqual(2);
  });

  it('a retry after the cancel of its batch is not cancelled again', async () => {
    const before = sim.ledger.count('start');
    await folder.trawl('retry', 'other.shared');
    await until(async () => (await json('status', 'other.shared')).attempt?.phase === 'running');
    expect(sim.ledger.count('start')).toBe(before + 1);
    await folder.trawl('cancel', 'other.shared');
    await until(async () => (await json('status', 'other.shared')).outcome?.attempt === 2);
  });

  it('a batch counts each scrape once, whatever was tried again', async () => {
    await until(async () => (await json('status', 'day.sad')).outcome?.attempt === 2);
    expect(await json('status', '--batch', 'day')).toMatchObject({
      submitted: 3,
      settled: 3,
      outcomes: { succeeded: 1, failed: 1, cancelled: 1 },
      secondsLeft: null,
    });
    expect((await folder.trawl('status', '--batch', 'day')).out).toMatch(
      /^settled +3 of 3\n {2}succeeded +1\n/m,
    );
  });

  it('export gives the items of a batch', async () => {
    const { code, out } = await folder.trawl('export', '--batch', 'day');
    expect(code).toBe(0);
    // Two of the failed run's last attempt, two of the good one.
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => Object.keys(JSON.parse(line)).length > 0),
    ).toEqual([true, true, true, true]);
  });

  it('tools shows what is found, and ends with 2 when something is missing', async () => {
    const { servers } = await json('status');
    expect(servers[0]).toMatchObject({ name: 'apify', runSlots: 5, waiting: 0, parked: 0 });
    const found = await json('tools', 'apify');
    expect(found.tools.map((row: { tool: string; found: boolean }) => [row.tool, row.found])).toEqual([
      [yellowPages, true],
      [places, true],
    ]);
    folder.write(
      'missing.yaml',
      `servers:\n  apify: { url: "${sim.url}", token: x, tools: [nobody/nothing] }\n`,
    );
    const missing = await folder.trawl('tools', '--config', 'missing.yaml');
    expect(missing.code).not.toBe(0);
    expect(missing.err).toMatch(/trawl: /);
  });
});
