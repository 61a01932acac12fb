/** Promise 1: a public job ends as its `outcome.json` says, whoever ends it and whatever comes between. */
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { Job } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import { endPoison } from '../../workers/scrape-end.js';
import type { Bench } from '../workers/harness.js';
import { broken, input, said } from './broken.js';

describe('a public job', () => {
  let bench: Bench;
  /** By id: what happens once a scrape is published and before its worker ends the job. */
  const meanwhile = new Map<string, () => Promise<unknown>>();
  beforeAll(async () => {
    bench = await broken({}, { lockMs: 3_000, stalledEveryMs: 300 });
    const { redis } = context();
    const done = redis.trawlDone.bind(redis);
    redis.trawlDone = async (...args) => {
      const reply = await done(...args);
      const id = String(args[10]);
      const act = meanwhile.get(id);
      meanwhile.delete(id);
      await act?.();
      return reply;
    };
  });
  afterAll(() => bench?.close());

  const context = () => (bench.daemons[0] as Bench['daemons'][number]).ctx;
  const key = (id: string) => `${bench.config.prefix}:scrape:default.${id}`;
  const job = async (id: string) => (await bench.queue.getJob(`default.${id}`)) as Job;
  const onDisk = (id: string) =>
    JSON.parse(readFileSync(join(bench.resultsOf(id), 'outcome.json'), 'utf8')) as OutcomeDocument;

  /** A worker that publishes and then stands still: its lock runs out, and another takes the job. */
  function freeze(id: string): { readonly reached: Promise<void>; wake(): void } {
    let wake = () => {};
    const asleep = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const reached = new Promise<void>((resolve) => {
      meanwhile.set(id, async () => {
        await bench.client.del(`${key(id)}:lock`);
        resolve();
        await asleep;
      });
    });
    return { reached, wake };
  }

  async function endsAsItSays(id: string): Promise<void> {
    await vi.waitFor(async () => expect(await (await job(id)).getState()).toMatch(/^(completed|failed)$/), {
      timeout: 20_000,
      interval: 50,
    });
    const { progress, returnvalue, failedReason } = await job(id);
    const document = onDisk(id);
    expect(progress).toEqual(document);
    if (document.outcome === 'succeeded') expect(returnvalue).toEqual(document);
    else expect(failedReason).toBe(document.message);
  }

  it('that is taken again while the results are away waits for them', { timeout: 60_000 }, async () => {
    const frozen = freeze('away');
    await bench.add('away', { input: input('away', { status: 'FAILED', items: 2 }) });
    await frozen.reached;
    const { dir } = bench.config.results;
    renameSync(dir, `${dir}.away`);
    try {
      const held = () => said(bench, 'sink.held').filter(({ jobId }) => jobId === 'default.away');
      await vi.waitFor(async () => expect((await job('away')).stalledCounter).toBe(1), 10_000);
      await vi.waitFor(() => expect(held()).not.toEqual([]), 5_000);
    } finally {
      renameSync(`${dir}.away`, dir);
    }
    await endsAsItSays('away');
    frozen.wake();
  });

  it('has its document from the moment it is published, and keeps it when the results are moved', {
    timeout: 60_000,
  }, async () => {
    const frozen = freeze('moved');
    await bench.add('moved', { input: input('moved') });
    await frozen.reached;
    const document = onDisk('moved');
    expect((await job('moved')).progress).toEqual(document);
    renameSync(bench.resultsOf('moved'), join(bench.dir, 'moved'));
    await vi.waitFor(async () => expect(await (await job('moved')).getState()).toBe('completed'), 20_000);
    expect((await job('moved')).returnvalue).toEqual(document);
    frozen.wake();
  });

  it('is not told of an attempt that another has followed', { timeout: 60_000 }, async () => {
    const frozen = freeze('late');
    await bench.add('late', { input: input('late', { status: 'FAILED' }) });
    await frozen.reached;
    await endsAsItSays('late');
    await (await job('late')).retry('failed');
    await vi.waitFor(() => expect(existsSync(bench.resultsOf('late')) && onDisk('late').attempt).toBe(2), {
      timeout: 30_000,
    });
    await endsAsItSays('late');
    frozen.wake();
    await vi.waitFor(
      () => expect(said(bench, 'lock.lost').map(({ jobId }) => jobId)).toContain('default.late'),
      { timeout: 5_000 },
    );
    await endsAsItSays('late');
  });

  it('to which a worker that wakes up late adds another child waits for that one', {
    timeout: 60_000,
  }, async () => {
    const { store, queues } = context();
    meanwhile.set('child', async () => {
      const { attempt } = await store.load('default.child');
      if (attempt !== null) await queues.addStage('poll', attempt, 'apify', { delayMs: 1_000 });
    });
    await bench.add('child', { input: input('child') });
    expect(await bench.outcome('child', 30_000)).toMatchObject({ outcome: 'succeeded' });
    await endsAsItSays('child');
  });

  it('whose end Redis refuses once is ended again', { timeout: 60_000 }, async () => {
    const redis = context().redis as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    const name = Object.keys(redis).find((command) => command.startsWith('moveToFinished')) as string;
    const real = redis[name] as (...args: unknown[]) => Promise<unknown>;
    let refused = 0;
    redis[name] = (...args) => {
      if (refused > 0 || !args.flat().includes(key('refused'))) return real.apply(redis, args);
      refused += 1;
      return Promise.reject(new Error("OOM command not allowed when used memory > 'maxmemory'."));
    };
    try {
      await bench.add('refused', { input: input('refused') });
      await vi.waitFor(() => expect(refused).toBe(1), { timeout: 30_000 });
      await endsAsItSays('refused');
    } finally {
      redis[name] = real;
    }
  });

  it('is given up only by the worker that has it', { timeout: 30_000 }, async () => {
    const { holds } = context();
    const other = 'compass/crawler-google-places';
    await holds.pause('apify', other, Date.now());
    await bench.add('kept', { tool: other, input: { searchStringsArray: ['kept'] } });
    await vi.waitFor(
      async () => expect(await (await job('kept')).getState()).toBe('waiting-children'),
      10_000,
    );
    const late = await job('kept');
    late.token = 'of-a-lock-that-is-gone';
    await expect(endPoison(context(), late, 'crashed')).rejects.toMatchObject({ code: 'lock_lost' });
    expect((await context().store.load('default.kept')).attempt?.phase).toBe('queued');
  });
});
