import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.js';
import { parseJob } from '../../src/scrape/parse.js';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import { type Sim, startSim } from '../sim/index.js';
import { Fleet } from '../workers/fleet.js';

const examples = fileURLToPath(new URL('../../examples/', import.meta.url));
const jobs = readFileSync(join(examples, 'jobs.ndjson'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as SampleJob);

interface SampleJob {
  readonly id: string;
  readonly batch: string;
  readonly tool: string;
}

/** The product does not need Python; where continuous integration runs, it has to be there. */
const python = process.env.CI !== undefined || spawnSync('python3', ['--version']).status === 0;

let fleet: Fleet;
let sim: Sim;

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(command: string, ...args: string[]): Promise<Ran> {
  const child = spawn(command, args, {
    env: { ...process.env, REDIS_URL: fleet.redis.url },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code: code as number, out, err };
}

const script = (name: string) => join(examples, name);

/** The sample jobs, in batches that no other test uses. */
function sample(name: string, some = jobs): string {
  const file = join(fleet.dir, `${name}.ndjson`);
  const lines = some.map((job) => JSON.stringify({ ...job, batch: `${name}-${job.batch}` }));
  // The last line has no line feed, and one is empty: both happen.
  writeFileSync(file, `\n${lines.join('\n')}`);
  return file;
}

async function settled(name: string): Promise<OutcomeDocument[]> {
  return Promise.all(
    jobs.map(async ({ id, batch }) => {
      const key = `${name}-${batch}.${id}`;
      while ((await fleet.queue.getJob(key)) === undefined) await new Promise((done) => setTimeout(done, 50));
      return fleet.outcome(key, 40_000);
    }),
  );
}

function lines(out: string): OutcomeDocument[] {
  return out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as OutcomeDocument);
}

beforeAll(async () => {
  sim = await startSim({
    conditions: { mix: 'fixed' },
    steering: { runSecs: 0.3, readySecs: 0, lagSecs: 0, items: 25, itemBytes: 200, usageUsd: 0.01 },
  });
  const { servers } = loadConfig({
    file: script('trawl.yaml'),
    env: { APIFY_TOKEN: 'test-token-canary' },
    cwd: examples,
  });
  fleet = await Fleet.inFrontOf({
    apify: {
      url: sim.url,
      token: 'test-token-canary',
      tools: Object.keys(servers.apify?.tools ?? {}),
      limits: { runs: 100, requestsPerSecond: 1_000 },
    },
  });
  await fleet.daemon();
});
afterAll(async () => {
  await fleet.close();
  await sim.close();
});

describe('the sample jobs', () => {
  it('are valid under the sample configuration', () => {
    const config = loadConfig({ file: script('trawl.yaml'), env: { APIFY_TOKEN: 'x' }, cwd: examples });
    for (const job of jobs) expect(parseJob(job, { config, source: 'file' })).toMatchObject({ ok: true });
    expect(new Set(jobs.map((job) => job.tool))).toEqual(
      new Set(Object.keys(config.servers.apify?.tools ?? {})),
    );
  });
});

describe.concurrent('an example', { timeout: 150_000 }, () => {
  it.for(['stream', 'list'])('redis-cli.sh %s', async (way, { expect }) => {
    const ran = await run(script('redis-cli.sh'), way, sample(`cli-${way}`));
    expect(ran).toMatchObject({ code: 0, out: expect.stringContaining(`submitted ${jobs.length} jobs`) });
    for (const outcome of await settled(`cli-${way}`)) {
      expect(outcome).toMatchObject({ outcome: 'succeeded', items: 25 });
    }
  });

  it.runIf(python).for(['stream', 'list'])('python/submit.py, %s', async (way, { expect }) => {
    const name = `python-${way}`;
    const options = way === 'list' ? ['--list'] : [];
    const ran = await run('python3', script('python/submit.py'), sample(name), '--wait', '40', ...options);
    expect(ran).toMatchObject({ code: 0, err: `submitted ${jobs.length} jobs\n` });
    const outcomes = lines(ran.out);
    expect(outcomes.map(({ id }) => id).sort()).toEqual(jobs.map(({ id }) => id).sort());
    expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['succeeded']));
  });

  it.runIf(python)('python/submit.py shows rejects and failures', async ({ expect }) => {
    const [good, bad] = jobs as [SampleJob, SampleJob];
    const file = sample('python-bad', [good, { ...bad, retrys: 1 } as SampleJob]);
    const ran = await run('python3', script('python/submit.py'), file, '--wait', '40');
    expect(ran.code).toBe(1);
    expect(ran.err).toMatch(/rejected: retrys: .*retries/);
    expect(lines(ran.out)).toMatchObject([{ id: good.id, outcome: 'succeeded' }]);
  });

  it('bullmq/submit.mjs', async ({ expect }) => {
    const file = sample('bull');
    const ran = await run(process.execPath, script('bullmq/submit.mjs'), file);
    expect(ran).toMatchObject({ code: 0, err: `submitted ${jobs.length} jobs\n` });
    expect(lines(ran.out)).toHaveLength(jobs.length);
    // Once more: the same outcomes, and no new run.
    const again = await run(process.execPath, script('bullmq/submit.mjs'), file);
    expect(lines(again.out).sort(byId)).toEqual(lines(ran.out).sort(byId));
  });

  it('bullmq/submit.mjs shows failures', async ({ expect }) => {
    const [good, bad] = jobs as [SampleJob, SampleJob];
    const file = sample('bull-bad', [good, { ...bad, tool: 'evil/tool' }]);
    const ran = await run(process.execPath, script('bullmq/submit.mjs'), file);
    expect(ran.code).toBe(1);
    expect(lines(ran.out).sort(byId)).toMatchObject([
      { id: bad.id, outcome: 'rejected' },
      { id: good.id, outcome: 'succeeded' },
    ]);
  });

  it('redis-cli.sh says what is wrong', async ({ expect }) => {
    expect((await run(script('redis-cli.sh'), 'queue', 'x')).code).toBe(2);
    const missing = await run(script('redis-cli.sh'), 'stream', '/nowhere/jobs.ndjson');
    expect(missing.code).not.toBe(0);
    expect(missing.err).toContain('/nowhere/jobs.ndjson');
  });

  it.runIf(python)('python/submit.py says what is wrong', async ({ expect }) => {
    expect((await run('python3', script('python/submit.py'))).code).toBe(2);
    const file = join(examples, 'jobs.ndjson');
    const away = await run('python3', script('python/submit.py'), file, '--url', 'redis://127.0.0.1:1');
    expect(away).toMatchObject({ code: 1, err: expect.stringContaining('not submitted') });
  });
});

function byId(a: OutcomeDocument, b: OutcomeDocument): number {
  return a.id < b.id ? -1 : 1;
}
