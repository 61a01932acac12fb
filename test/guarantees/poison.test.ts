/** Promise 11: what cannot be read ends alone, and its public job is settled (crashes: crashes.test.ts). */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Bench, yellowPages } from '../workers/harness.js';
import { backlog, broken, input } from './broken.js';

describe('what cannot be read', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 10 } }, { lockMs: 6_000, stalledEveryMs: 500 });
    for (const kind of answers) {
      const faults = [{ op: 'poll', kind, times: 10_000 }];
      const id = answerId(kind);
      await bench.add(id, { input: input(id, { runSecs: 600, faults }), deadline: 3 });
    }
  });
  afterAll(() => bench?.close());

  const answers = ['not_json', 'huge', 'cut', 'wrong_shape'];
  const answerId = (kind: string) => `answer-${kind.replaceAll('_', '-')}`;

  const depth = 200_000;
  const jobs: Record<string, { data: unknown; outcome: string; message: RegExp }> = {
    'a message of 50 MB': {
      data: { tool: yellowPages, input: { search: 'x'.repeat(50 * 1024 * 1024) } },
      outcome: 'rejected',
      message: /inputBytes/,
    },
    'a message of 50 MB that is no object': {
      data: 'x'.repeat(50 * 1024 * 1024),
      outcome: 'rejected',
      message: /expected a mapping/,
    },
    'a message that is nested without end': {
      data: `{"tool":"${yellowPages}","input":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}`,
      outcome: 'rejected',
      message: /./,
    },
  };

  it.each(Object.entries(jobs))('%s', { timeout: 40_000 }, async (name, { data, outcome, message }) => {
    const id = name.replaceAll(/[^a-z0-9]+/g, '-');
    const raw = typeof data === 'string' && data.startsWith('{') ? data : JSON.stringify(data);
    const [beside] = await backlog(bench, 1, {}, { prefix: `beside-${id}` });
    await add(id, raw);
    const document = await bench.outcome(id, 30_000);
    expect(document.outcome).toBe(outcome);
    expect(document.message).toMatch(message);
    expect(document.message.length).toBeLessThan(2_000);
    expect(await bench.outcome(beside as string, 30_000)).toMatchObject({ outcome: 'succeeded' });
  });

  it('a message that is no JSON at all', { timeout: 40_000 }, async () => {
    await add('no-json', '{"tool":');
    // Not even BullMQ can read it, until it comes back from its first worker.
    await vi.waitFor(() => bench.queue.getJob('default.no-json'), { timeout: 30_000, interval: 200 });
    const document = await bench.outcome('no-json', 30_000);
    expect(document).toMatchObject({ id: 'no-json', batch: 'default', outcome: 'rejected' });
    expect(document.message).toMatch(/expected a mapping/);
    const [after] = await backlog(bench, 1, {}, { prefix: 'after' });
    expect(await bench.outcome(after as string, 30_000)).toMatchObject({ outcome: 'succeeded' });
  });

  it('a job that BullMQ gave up on', { timeout: 40_000 }, async () => {
    const { store, queues } = (bench.daemons[0] as Bench['daemons'][number]).ctx;
    const attempt = async (id: string) => (await store.load(`default.${id}`)).attempt;
    // Before it was ever looked at, while its run was under way, and when that was over.
    await bench.add('given-up', { input: input('given-up') }, { delay: 3_600_000 });
    await bench.add('given-up-running', { input: input('given-up-running', { runSecs: 600 }) });
    await bench.add('given-up-late', { input: input('given-up-late', { runSecs: 1.5, items: 2 }) });
    for (const id of ['given-up-running', 'given-up-late']) {
      await vi.waitFor(async () => expect((await attempt(id))?.phase).toBe('running'), { timeout: 10_000 });
    }
    // As its stalled check writes it above maxStalledCount.
    for (const id of ['given-up', 'given-up-running', 'given-up-late'])
      await bench.client.hset(hashOf(id), 'defa', 'stalled too often');
    await (await bench.queue.getJob('default.given-up'))?.promote();
    await vi.waitFor(
      async () => expect(await queues.removeStage('poll', 'apify', 'default.given-up-running', 1)).toBe(true),
      { timeout: 10_000, interval: 20 },
    );
    for (const id of ['given-up', 'given-up-running']) {
      const document = await bench.outcome(id, 20_000);
      expect(document.outcome).toBe('errored');
      expect(document.message).toMatch(/stalled too often/);
      expect((await bench.queue.getJob(`default.${id}`))?.failedReason).toBe(document.message);
    }
    const runId = (await bench.outcome('given-up-running')).runId;
    const run = () => bench.sim.runs().find((one) => one.runId === runId);
    await vi.waitFor(() => expect(run()?.status).toBe('ABORTED'), { timeout: 10_000 });
    // What had been decided is its outcome all the same.
    expect(await bench.outcome('given-up-late', 25_000)).toMatchObject({ outcome: 'succeeded', items: 2 });
    expect(await (await bench.queue.getJob('default.given-up-late'))?.getState()).toBe('completed');
  });

  it('a job that another program failed', { timeout: 40_000 }, async () => {
    await bench.add('failed-outside', { input: input('failed-outside') }, { delay: 3_600_000 });
    const queue = `${bench.config.prefix}:scrape`;
    await bench.client
      .multi()
      .zrem(`${queue}:delayed`, 'default.failed-outside')
      .lpush(`${queue}:active`, 'default.failed-outside')
      .exec();
    const job = await bench.queue.getJob('default.failed-outside');
    await job?.moveToFailed(new Error('no such job here'), '0');
    const ended = async () => (await bench.queue.getJob('default.failed-outside')) as NonNullable<typeof job>;
    await vi.waitFor(
      async () => expect((await ended()).progress).toMatchObject({ outcome: 'errored' }),
      15_000,
    );
    const { failedReason, progress } = await ended();
    expect(failedReason).toMatch(/no such job here/);
    expect(progress).toMatchObject({ message: failedReason });
  });

  it.each(answers)('an answer that is %s for ever', { timeout: 40_000 }, async (kind) => {
    const document = await bench.outcome(answerId(kind), 40_000);
    expect(document).toMatchObject({ outcome: 'deadline_exceeded', runStatus: 'ABORTED' });
    expect(bench.sim.runs().find(({ runId }) => runId === document.runId)?.status).toBe('ABORTED');
  });

  const hashOf = (id: string) => `${bench.config.prefix}:scrape:default.${id}`;

  /** As a producer in another language would, who checks nothing. */
  async function add(id: string, data: string): Promise<void> {
    await bench.add(id, {}, { delay: 3_600_000 });
    await bench.client.hset(`${bench.config.prefix}:scrape:default.${id}`, 'data', data);
    const queue = `${bench.config.prefix}:scrape`;
    await bench.client
      .multi()
      .zrem(`${queue}:delayed`, `default.${id}`)
      .lpush(`${queue}:wait`, `default.${id}`)
      .zadd(`${queue}:marker`, 0, '0')
      .exec();
  }
});
