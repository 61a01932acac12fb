import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { FlowProducer, type JobsOptions, Worker } from 'bullmq';
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import { type Sim, startSim } from '../sim/index.js';
import { Fleet } from './fleet.js';
import { yellowPages } from './harness.js';

/** Programs with BullMQ and no code of ours: one fleet, every test at the same time on it. */
let fleet: Fleet;
let sim: Sim;
/** In front of it only one run at a time is allowed. */
let narrowSim: Sim;
let serial = 0;

interface Work {
  readonly data: Record<string, unknown>;
  /** Told apart by it in the ledgers of the simulators. */
  readonly mark: string;
}

function work(sim: Record<string, unknown> = {}, extra: Record<string, unknown> = {}): Work {
  serial += 1;
  const mark = `query-${serial}`;
  const steering = { runSecs: 0.3, readySecs: 0, lagSecs: 0, items: 2, usageUsd: 0.01, ...sim };
  const input = { search: mark, location: 'Austin, TX', sim: steering };
  return { mark, data: { server: 'apify', tool: yellowPages, input, ...extra } };
}

const add = (data: object, options: JobsOptions = {}) => fleet.queue.add('anything', data, options);
const starts = (mark: string) =>
  [...sim.ledger.starts(), ...narrowSim.ledger.starts()].filter((entry) => entry.input?.includes(`"${mark}"`))
    .length;

/** What `waitUntilFinished` gives, or the reason of the failure. */
async function ended(jobId: string): Promise<{ value: OutcomeDocument } | { reason: string }> {
  const job = await fleet.queue.getJob(jobId);
  if (job === undefined) throw new Error(`no job ${jobId}`);
  try {
    return { value: (await job.waitUntilFinished(fleet.events, 30_000)) as OutcomeDocument };
  } catch (error) {
    return { reason: (error as Error).message };
  }
}

async function completed(jobId: string): Promise<OutcomeDocument> {
  const end = await ended(jobId);
  if ('reason' in end) throw new Error(`${jobId} failed: ${end.reason}`);
  return end.value;
}

async function failed(jobId: string): Promise<string> {
  const end = await ended(jobId);
  if ('value' in end) throw new Error(`${jobId} completed: ${end.value.message}`);
  return end.reason;
}

const progressOf = async (jobId: string) => (await fleet.queue.getJob(jobId))?.progress as OutcomeDocument;

beforeAll(async () => {
  [sim, narrowSim] = await Promise.all([
    startSim({ conditions: { mix: 'fixed' } }),
    startSim({ conditions: { mix: 'fixed' } }),
  ]);
  const server = (url: string, runs: number) => ({
    url,
    token: 'test-token-canary',
    tools: [yellowPages],
    limits: { runs, requestsPerSecond: 1_000 },
  });
  fleet = await Fleet.inFrontOf({ apify: server(sim.url, 50), narrow: server(narrowSim.url, 1) });
  await fleet.daemon();
});
afterAll(async () => {
  await fleet.close();
  await Promise.all([sim.close(), narrowSim.close()]);
});

describe.concurrent('a producer with plain BullMQ', { timeout: 45_000 }, () => {
  it('names a scrape by jobId, with or without its batch in front', async ({ expect }) => {
    const cases = [
      { jobId: 'leads.austin', batch: 'leads', data: { batch: 'leads' }, id: 'austin' },
      { jobId: 'reno', batch: 'leads', data: { batch: 'leads', id: 'reno' }, id: 'reno' },
      { jobId: 'default.tulsa', batch: 'default', data: {}, id: 'tulsa' },
      { jobId: 'boise', batch: 'default', data: { id: 'boise' }, id: 'boise' },
      { jobId: 'v1.2', batch: 'default', data: {}, id: 'v1.2' },
    ];
    for (const { jobId, data } of cases) await add(work({}, data).data, { jobId });
    for (const { jobId, batch, id } of cases) {
      const outcome = await completed(jobId);
      expect(outcome).toMatchObject({ batch, id, outcome: 'succeeded', items: 2 });
      const file = join(fleet.resultsOf(id, batch), 'outcome.json');
      expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(outcome);
    }
  });

  it('may leave the id to BullMQ, also for a schedule', async ({ expect }) => {
    const { data, mark } = work();
    const plain = await add(data);
    expect(plain.id).toMatch(/^\d+$/);
    const nightly = work();
    const scheduled = await fleet.queue.upsertJobScheduler(
      'nightly',
      { every: 86_400_000 },
      { name: 'scrape', data: nightly.data },
    );
    expect(scheduled?.id).toMatch(/^repeat:nightly:/);
    const outcome = await completed(plain.id as string);
    expect(outcome.id).toMatch(new RegExp(`^job-${plain.id}-[0-9a-f]{16}$`));
    expect(outcome.outcome).toBe('succeeded');
    expect((await completed(scheduled?.id as string)).id).toMatch(/^job-repeat-nightly-\d+-[0-9a-f]{16}$/);
    expect(existsSync(fleet.resultsOf(outcome.id))).toBe(true);
    expect([starts(mark), starts(nightly.mark)]).toEqual([1, 1]);
    await fleet.queue.removeJobScheduler('nightly');
  });

  it('is told how to name it when data.id says something else', async ({ expect }) => {
    const { data, mark } = work({}, { id: 'plumbers' });
    await add(data, { jobId: 'roofers' });
    expect(await failed('roofers')).toMatch(
      /id: "plumbers" differs from the jobId "roofers"; add the job with \{ jobId: "default\.plumbers" \}/,
    );
    expect(await progressOf('roofers')).toMatchObject({ outcome: 'rejected', runId: null });
    expect(starts(mark)).toBe(0);
  });

  it('gets the outcome document from waitUntilFinished and as progress, before the end', async ({
    expect,
  }) => {
    const good = work();
    const bad = work({ status: 'FAILED', statusMessage: 'Proxy exploded.' });
    const told = new Map<string, unknown>();
    const onProgress = ({ jobId, data }: { jobId: string; data: unknown }) => {
      told.set(jobId, data);
    };
    const toldAtEnd = new Map<string, unknown>();
    const onEnd = ({ jobId }: { jobId: string }) => {
      toldAtEnd.set(jobId, told.get(jobId));
    };
    fleet.events.on('progress', onProgress);
    fleet.events.on('completed', onEnd);
    fleet.events.on('failed', onEnd);
    await add(good.data, { jobId: 'default.good' });
    await add(bad.data, { jobId: 'default.bad' });
    const outcome = await completed('default.good');
    expect(outcome).toMatchObject({ outcome: 'succeeded', items: 2, attempt: 1 });
    expect(await progressOf('default.good')).toEqual(outcome);
    const reason = await failed('default.bad');
    const failure = await progressOf('default.bad');
    expect(failure).toMatchObject({ outcome: 'failed', items: 2, runStatus: 'FAILED', message: reason });
    expect(toldAtEnd.get('default.good')).toEqual(outcome);
    expect(toldAtEnd.get('default.bad')).toEqual(failure);
    fleet.events.off('progress', onProgress);
    fleet.events.off('completed', onEnd);
    fleet.events.off('failed', onEnd);
  });

  it('orders the backlog by priority, the lower number first, its own or the job’s', async ({ expect }) => {
    const narrow = { server: 'narrow' };
    // Takes the only slot until all the others wait.
    const first = work({ runSecs: 600 }, narrow);
    await add(first.data, { jobId: 'default.first' });
    while (starts(first.mark) === 0) await delay(20);
    const queued: [id: string, own: number | undefined, job: number | undefined][] = [
      ['p-plain', undefined, undefined],
      ['p-own-7', 7, undefined],
      ['p-own-2', 2, undefined],
      ['p-own-1', 1, undefined],
      ['p-job-2', undefined, 2],
    ];
    for (const [id, own, priority] of queued) {
      const { data } = work({ runSecs: 0.1 }, { ...narrow, ...(priority === undefined ? {} : { priority }) });
      await add(data, { jobId: `default.${id}`, ...(own === undefined ? {} : { priority: own }) });
    }
    const waiting = () => fleet.client.zcard(`${fleet.config.prefix}:start-narrow:prioritized`);
    while ((await waiting()) < queued.length) await delay(20);
    for (const run of narrowSim.runs()) narrowSim.finish(run.runId);
    const ids = queued.map(([id]) => id);
    const outcomes = await Promise.all(ids.map((id) => completed(`default.${id}`)));
    const byStart = [...outcomes].sort((a, b) => ((a.startedAt ?? '') < (b.startedAt ?? '') ? -1 : 1));
    expect(byStart.map(({ id }) => id)).toEqual(['p-own-1', 'p-own-2', 'p-job-2', 'p-plain', 'p-own-7']);
  });

  it('may delay, and the wait is not a failure', async ({ expect }) => {
    const job = await add(work().data, { jobId: 'default.later', delay: 1_500 });
    const { outcome, startedAt, submittedAt } = await completed('default.later');
    expect(outcome).toBe('succeeded');
    expect(Date.parse(submittedAt)).toBe(job.timestamp);
    expect(Date.parse(startedAt ?? '')).toBeGreaterThanOrEqual(job.timestamp + 1_500);
  });

  it('may deduplicate: one run', async ({ expect }) => {
    const { data, mark } = work();
    const deduplication = { id: 'one-of-these' };
    await add(data, { jobId: 'default.dedup-1', deduplication });
    const second = await add(data, { jobId: 'default.dedup-2', deduplication });
    expect(second.id).toBe('default.dedup-1');
    // Parked is not finished: BullMQ still knows it.
    while (starts(mark) === 0) await delay(20);
    await add(data, { jobId: 'default.dedup-3', deduplication });
    expect((await completed('default.dedup-1')).outcome).toBe('succeeded');
    expect(await fleet.queue.getJob('default.dedup-2')).toBeUndefined();
    expect(await fleet.queue.getJob('default.dedup-3')).toBeUndefined();
    expect(starts(mark)).toBe(1);
  });

  it('has no say in attempts or retention: retries and keep rule', async ({ expect }) => {
    const bad = work({ status: 'FAILED' });
    const good = work();
    const options = { attempts: 3, backoff: 100, removeOnComplete: true, removeOnFail: true };
    await add(bad.data, { jobId: 'default.attempts', ...options });
    await add(good.data, { jobId: 'default.kept', ...options });
    await failed('default.attempts');
    expect(await progressOf('default.attempts')).toMatchObject({ outcome: 'failed', attempt: 1 });
    await completed('default.kept');
    expect(await (await fleet.queue.getJob('default.attempts'))?.getState()).toBe('failed');
    expect(await (await fleet.queue.getJob('default.kept'))?.getState()).toBe('completed');
    expect([starts(bad.mark), starts(good.mark)]).toEqual([1, 1]);
  });

  it('may hang scrapes under a parent of its own', async ({ expect }) => {
    const { prefix } = fleet.config;
    const producer = new FlowProducer({ connection: fleet.client, prefix });
    const child = (jobId: string, sim: Record<string, unknown>) => ({
      name: 'scrape',
      queueName: 'scrape',
      data: work(sim).data,
      opts: { jobId, ignoreDependencyOnFailure: true },
    });
    let seen: { values: OutcomeDocument[]; failures: string[] } | null = null;
    const connection = fleet.client.duplicate();
    const report = new Worker(
      'report',
      async (job) => {
        seen = {
          values: Object.values(await job.getChildrenValues<OutcomeDocument>()),
          failures: Object.values(await job.getIgnoredChildrenFailures()),
        };
        return seen.values.length;
      },
      { connection, prefix },
    );
    const finished = new Promise((resolve) => report.on('completed', resolve));
    await producer.add({
      name: 'report',
      queueName: 'report',
      children: [child('default.flow-a', {}), child('default.flow-b', { status: 'FAILED' })],
    });
    await finished;
    expect(seen).toMatchObject({
      values: [{ id: 'flow-a', outcome: 'succeeded', items: 2 }],
      failures: [expect.stringMatching(/FAILED/)],
    });
    await report.close();
    connection.disconnect();
  });

  it('retries a failed scrape with job.retry(): the next attempt', async ({ expect }) => {
    const { data, mark } = work({ status: 'FAILED', items: 3 });
    await add(data, { jobId: 'default.again' });
    await failed('default.again');
    const first = await progressOf('default.again');
    const dir = fleet.resultsOf('again');
    await (await fleet.queue.getJob('default.again'))?.retry();
    await failed('default.again');
    const second = await progressOf('default.again');
    expect(second).toMatchObject({ outcome: 'failed', attempt: 2, items: 3, usageUsd: 0.02 });
    expect(second.runId).not.toBe(first.runId);
    const read = (...path: string[]) => JSON.parse(readFileSync(join(dir, ...path), 'utf8')) as unknown;
    expect(read('.attempts', '1', 'outcome.json')).toEqual(first);
    expect(existsSync(join(dir, '.attempts', '1', 'page-000000.ndjson'))).toBe(true);
    expect(read('outcome.json')).toEqual(second);
    expect(starts(mark)).toBe(2);
  });

  it('retries a refused scrape, which then succeeds', async ({ expect }) => {
    const { data } = work({ refuse: 'bad_input', refuseTimes: 1 });
    await add(data, { jobId: 'default.refused-once' });
    await failed('default.refused-once');
    await (await fleet.queue.getJob('default.refused-once'))?.retry('failed');
    expect(await completed('default.refused-once')).toMatchObject({
      outcome: 'succeeded',
      attempt: 2,
      items: 2,
    });
  });

  it('gets the same outcome from job.retry() of a completed scrape, and pays for nothing', async ({
    expect,
  }) => {
    const { data, mark } = work();
    await add(data, { jobId: 'default.done' });
    const outcome = await completed('default.done');
    await (await fleet.queue.getJob('default.done'))?.retry('completed');
    expect(await completed('default.done')).toEqual(outcome);
    expect(await progressOf('default.done')).toEqual(outcome);
    expect(starts(mark)).toBe(1);
  });

  it('may submit one scrape under several job ids: one run, and each job gets its outcome', async ({
    expect,
  }) => {
    const twins = async (...ids: [string, string]) => {
      const { data, mark } = work();
      await Promise.all(ids.map((jobId) => add(data, { jobId })));
      const [one, other] = await Promise.all(ids.map(completed));
      expect(one?.outcome).toBe('succeeded');
      expect(other).toEqual(one);
      // And once more, long after.
      await fleet.queue.remove(ids[1]);
      await add(data, { jobId: ids[1] });
      expect(await completed(ids[1])).toEqual(one);
      expect(starts(mark)).toBe(1);
    };
    await Promise.all([twins('default.twin', 'twin'), twins('twin-2', 'default.twin-2')]);
  });

  it('is told of a conflict when the same scrape is to get another input', async ({ expect }) => {
    const conflict = /default\.contested\S* is known with another tool, input or server/;
    const [mine, theirs, late] = [work(), work(), work()];
    // A worker may take both in the same moment, in either order; one of them is first.
    const ids = ['default.contested', 'contested'] as const;
    await Promise.all([add(mine.data, { jobId: ids[0] }), add(theirs.data, { jobId: ids[1] })]);
    const ends = await Promise.all(ids.map(ended));
    const [loser] = ends.flatMap((end) => ('reason' in end ? [end.reason] : []));
    const [winner] = ends.flatMap((end) => ('value' in end ? [end.value] : []));
    expect(loser).toMatch(conflict);
    expect(winner?.outcome).toBe('succeeded');
    expect(starts(mine.mark) + starts(theirs.mark)).toBe(1);
    await add(late.data, { jobId: 'default.contested-late' });
    while (starts(late.mark) === 0) await delay(20);
    await add(work().data, { jobId: 'contested-late' });
    expect(await failed('contested-late')).toMatch(conflict);
    expect(await progressOf('contested-late')).toMatchObject({ outcome: 'rejected', runId: null });
    expect((await completed('default.contested-late')).outcome).toBe('succeeded');
    expect(fleet.logged.some(({ event }) => event === 'scrape.conflict')).toBe(true);
  });
});
