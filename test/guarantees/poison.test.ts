/** Promise 11: what cannot be read ends alone, and its public job is settled (crashes: crashes.test.ts). */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import { type Bench, yellowPages } from '../workers/harness.js';
import { backlog, broken, input } from './broken.js';

describe('what cannot be read', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 10 } }, { lockMs: 1_000, stalledEveryMs: 100 });
  });
  afterAll(() => bench?.close());

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
    const job = () => bench.client.hgetall(`${bench.config.prefix}:scrape:default.no-json`);
    await vi.waitFor(async () => expect((await job()).progress).toMatch(/"outcome":"errored"/), 35_000);
    const document = JSON.parse((await job()).progress ?? '') as OutcomeDocument;
    expect(document).toMatchObject({ id: 'no-json', batch: 'default', outcome: 'errored' });
    expect(
      await bench.client.zscore(`${bench.config.prefix}:scrape:failed`, 'default.no-json'),
    ).not.toBeNull();
    const [after] = await backlog(bench, 1, {}, { prefix: 'after' });
    expect(await bench.outcome(after as string, 30_000)).toMatchObject({ outcome: 'succeeded' });
  });

  const answers = ['not_json', 'huge', 'cut', 'wrong_shape'];
  it.each(answers)('an answer that is %s for ever', { timeout: 40_000 }, async (kind) => {
    const id = `answer-${kind.replaceAll('_', '-')}`;
    const faults = [{ op: 'poll', kind, times: 10_000 }];
    await bench.add(id, { input: input(id, { runSecs: 600, faults }), deadline: 3 });
    const document = await bench.outcome(id, 30_000);
    expect(document).toMatchObject({ outcome: 'deadline_exceeded', runStatus: 'ABORTED' });
    expect(bench.sim.runs().find(({ runId }) => runId === document.runId)?.status).toBe('ABORTED');
  });

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
