import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import { Bench, maps } from './harness.js';

let bench: Bench;

const input = (sim: Record<string, unknown>) => ({
  search: 'plumber',
  location: 'Austin, TX',
  sim: { runSecs: 0.5, readySecs: 0, lagSecs: 0, ...sim },
});
const long = { runSecs: 600 };

interface Case {
  readonly job: Record<string, unknown>;
  readonly expected: Partial<OutcomeDocument>;
  readonly message: RegExp;
  /** Starts the server saw for it. */
  readonly starts: number;
  readonly state: 'completed' | 'failed';
}

const cases: Record<string, Case> = {
  'all items': {
    job: { input: input({ items: 37, itemBytes: 300, usageUsd: 0.01 }), meta: { row: 17 } },
    expected: {
      outcome: 'succeeded',
      items: 37,
      pages: 1,
      attempt: 1,
      usageUsd: 0.01,
      meta: { row: 17 },
      warnings: [],
    },
    message: /^37 items in 1 page\.$/,
    starts: 1,
    state: 'completed',
  },
  'many pages, large items': {
    job: { input: input({ items: 40, itemBytes: 60_000, usageUsd: null }) },
    expected: { outcome: 'succeeded', items: 40, usageUsd: null },
    message: /^40 items in \d+ pages\.$/,
    starts: 1,
    state: 'completed',
  },
  'one-item pages': {
    job: { input: input({ items: 3, itemBytes: 700_000 }) },
    expected: { outcome: 'succeeded', items: 3, pages: 3 },
    message: /3 pages/,
    starts: 1,
    state: 'completed',
  },
  'an item count that lags': {
    job: { input: input({ items: 50, lagSecs: 2, lagMode: 'zero' }) },
    expected: { outcome: 'succeeded', items: 50 },
    message: /50 items/,
    starts: 1,
    state: 'completed',
  },
  'an item count that stays absent': {
    job: { input: input({ items: 5, noItemCount: true }) },
    expected: { outcome: 'succeeded', items: 5 },
    message: /5 items/,
    starts: 1,
    state: 'completed',
  },
  'nothing at all': {
    job: { input: input({ items: 0, statusMessage: 'Finished! 0 succeeded' }) },
    expected: { outcome: 'empty', items: 0, pages: 0, destination: null },
    message: /holds no items.*Finished! 0 succeeded/,
    starts: 1,
    state: 'completed',
  },
  'nothing here but elsewhere': {
    job: { input: input({ items: 0, otherDatasets: { reviews: 12 }, records: { OUTPUT: { a: 1 } } }) },
    expected: { outcome: 'empty' },
    message: /Not empty: dataset reviews .*12 items.*record OUTPUT/,
    starts: 1,
    state: 'completed',
  },
  'nothing, which is fine': {
    job: { input: input({ items: 0 }), minItems: 0 },
    expected: { outcome: 'succeeded', items: 0 },
    message: /minItems 0/,
    starts: 1,
    state: 'completed',
  },
  'nothing, which is a failure': {
    job: { input: input({ items: 0 }), onEmpty: 'fail' },
    expected: { outcome: 'empty' },
    message: /no items/,
    starts: 1,
    state: 'failed',
  },
  'nothing, tried again': {
    job: { input: input({ items: 0, usageUsd: 0.02 }), onEmpty: 'retry', retries: 1 },
    expected: { outcome: 'empty', attempt: 2, usageUsd: 0.04 },
    message: /no items/,
    starts: 2,
    state: 'completed',
  },
  'too few': {
    job: { input: input({ items: 3 }), minItems: 10 },
    expected: { outcome: 'low_count', items: 3 },
    message: /3 items, fewer than the 10 expected/,
    starts: 1,
    state: 'completed',
  },
  'a spending limit': {
    job: {
      input: input({ items: 4, status: 'ABORTED', usageUsd: 0.5 }),
      options: { maxTotalChargeUsd: 0.5 },
    },
    expected: { outcome: 'capped', items: 4, runStatus: 'ABORTED' },
    message: /own limit: \$0.5 of maxTotalChargeUsd \$0.5/,
    starts: 1,
    state: 'completed',
  },
  'a failed run with items': {
    job: { input: input({ items: 4, status: 'FAILED', statusMessage: 'Proxy exploded.' }) },
    expected: {
      outcome: 'failed',
      items: 4,
      pages: 1,
      runStatus: 'FAILED',
      statusMessage: 'Proxy exploded.',
    },
    message: /FAILED.*its 4 items were kept.*Proxy exploded/,
    starts: 1,
    state: 'failed',
  },
  'a failed run, retried': {
    job: { input: input({ items: 2, status: 'FAILED' }), retries: 1 },
    expected: { outcome: 'failed', attempt: 2, items: 2 },
    message: /FAILED/,
    starts: 2,
    state: 'failed',
  },
  'a run that timed out': {
    job: { input: input({ items: 1, status: 'TIMED-OUT' }) },
    expected: { outcome: 'failed', runStatus: 'TIMED-OUT', items: 1 },
    message: /TIMED-OUT.*1 item was kept/,
    starts: 1,
    state: 'failed',
  },
  'a run past its deadline': {
    job: { input: input({ ...long, items: 400 }), deadline: 2 },
    expected: { outcome: 'deadline_exceeded', runStatus: 'ABORTED' },
    message: /^Aborted after 2s: the run was still under way with \d+ items?; /,
    starts: 1,
    state: 'failed',
  },
  'a run that ends slowly once aborted': {
    job: { input: input({ ...long, items: 0, abortSecs: 2 }), deadline: 1 },
    expected: { outcome: 'deadline_exceeded', runStatus: 'ABORTED' },
    message: /Aborted after 1s/,
    starts: 1,
    state: 'failed',
  },
  'an input against the schema': {
    job: { input: { search: { a: 1 } } },
    expected: { outcome: 'rejected', runId: null },
    message: /does not fit the tool's schema: .*search.*Nothing was spent/,
    starts: 0,
    state: 'failed',
  },
  'an input the server refuses': {
    job: { input: input({ refuse: 'bad_input' }) },
    expected: { outcome: 'rejected', runId: null },
    message: /server refused/,
    starts: 0,
    state: 'failed',
  },
  'a tool that is not allowed': {
    job: { tool: 'evil/tool', input: {} },
    expected: { outcome: 'rejected' },
    message: /evil\/tool/,
    starts: 0,
    state: 'failed',
  },
  'an unknown key': {
    job: { input: input({}), retrys: 1 },
    expected: { outcome: 'rejected' },
    message: /retrys.*retries/,
    starts: 0,
    state: 'failed',
  },
  'waiting longer than it may': {
    job: { input: input({}), expiresIn: 0.001 },
    expected: { outcome: 'expired' },
    message: /Expired: it waited/,
    starts: 0,
    state: 'failed',
  },
  'records of every kind': {
    job: {
      tool: maps,
      input: {
        searchStringsArray: ['x'],
        sim: { runSecs: 0.5, readySecs: 0, items: 1, records: { OUTPUT: { done: true } } },
      },
      records: ['OUTPUT', 'MISSING', '../../evil'],
    },
    expected: { outcome: 'succeeded', tool: maps },
    message: /1 item /,
    starts: 1,
    state: 'completed',
  },
  'answers without structured content': {
    job: {
      input: input({
        items: 6,
        faults: [
          { op: 'poll', kind: 'sentence_only' },
          { op: 'start', kind: 'no_structured' },
        ],
      }),
    },
    expected: { outcome: 'succeeded', items: 6 },
    message: /6 items/,
    starts: 1,
    state: 'completed',
  },
  'broken answers on the way': {
    job: {
      input: input({
        items: 20,
        faults: [
          { op: 'poll', kind: 'not_json' },
          { op: 'poll', kind: 'reset_before' },
          { op: 'poll', kind: 'http_500' },
          { op: 'read', kind: 'cut' },
          { op: 'read', kind: 'wrong_shape' },
        ],
      }),
    },
    expected: { outcome: 'succeeded', items: 20 },
    message: /20 items/,
    starts: 1,
    state: 'completed',
  },
};

const idOf = (name: string) => name.replaceAll(/[^a-z0-9]+/g, '-');

beforeAll(async () => {
  bench = await Bench.open();
  await bench.daemon();
  await Promise.all(Object.entries(cases).map(([name, { job }]) => bench.add(idOf(name), job)));
});
afterAll(() => bench.close());

describe('a scrape from the queue to the disk', () => {
  it.each(Object.entries(cases))(
    '%s',
    { timeout: 45_000 },
    async (name, { expected, message, starts, state }) => {
      const id = idOf(name);
      const outcome = await bench.outcome(id, 45_000);
      expect(outcome).toMatchObject(expected);
      expect(outcome.message).toMatch(message);
      const job = await bench.queue.getJob(`default.${id}`);
      expect(await job?.getState()).toBe(state);
      expect(job?.progress).toEqual(outcome);
      if (state === 'completed') expect(job?.returnvalue).toEqual(outcome);
      else expect(job?.failedReason).toBe(outcome.message);
      const dir = bench.resultsOf(id);
      expect(JSON.parse(readFileSync(join(dir, 'outcome.json'), 'utf8'))).toEqual(outcome);
      expect(itemsOnDisk(dir)).toBe(outcome.items);
      if (starts > 0) expect(outcome.runId).toMatch(/^run/);
      expect(existsSync(join(dir, '.attempts', '1'))).toBe(starts > 1);
    },
  );

  it('keeps the order of items and each once', async () => {
    const dir = bench.resultsOf(idOf('many pages, large items'));
    const items = pagesOf(dir).flatMap((page) =>
      readFileSync(join(dir, page), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { _i: number })._i),
    );
    expect(items).toEqual(Array.from({ length: 40 }, (_, index) => index));
  });

  it('writes records, and warns of what is missing', async () => {
    const outcome = await bench.outcome(idOf('records of every kind'));
    const dir = join(bench.resultsOf(idOf('records of every kind')), 'records');
    expect(readdirSync(dir)).toEqual(['OUTPUT.json']);
    expect(outcome.warnings).toEqual([
      "Record MISSING does not exist in the run's key-value store.",
      "Record ../../evil does not exist in the run's key-value store.",
    ]);
  });

  it('leaves no stage job, no slot and nothing in flight behind', async () => {
    const { ctx } = bench.daemons[0] as Bench['daemons'][number];
    for (const queue of ctx.queues.all.filter((queue) => queue.name !== 'scrape')) {
      expect(
        await queue.getJobCounts('waiting', 'prioritized', 'delayed', 'active', 'failed', 'completed'),
      ).toEqual({
        waiting: 0,
        prioritized: 0,
        delayed: 0,
        active: 0,
        failed: 0,
        completed: 0,
      });
    }
    expect(await ctx.redis.zcard(ctx.keys.slots('apify'))).toBe(0);
    expect(bench.sim.stats()).toMatchObject({
      inFlight: 0,
      starts: Object.values(cases).reduce((sum, c) => sum + c.starts, 0),
    });
  });

  it('counts the batch and tells the event stream, once a scrape', async () => {
    const { ctx } = bench.daemons[0] as Bench['daemons'][number];
    const total = Object.keys(cases).length;
    const batch = await ctx.redis.hgetall(ctx.keys.batch('default'));
    expect(batch).toMatchObject({ submitted: String(total), settled: String(total) });
    const events = await ctx.redis.xrange(ctx.keys.events, '-', '+');
    const settled = events
      .filter(([, fields]) => fields[1] === 'scrape.settled')
      .map(([, fields]) => fields[3]);
    expect(new Set(settled).size).toBe(total);
    expect(settled).toHaveLength(total);
  });
});

function pagesOf(dir: string): string[] {
  return readdirSync(dir)
    .filter((name) => name.startsWith('page-'))
    .sort();
}

function itemsOnDisk(dir: string): number {
  return pagesOf(dir).reduce(
    (sum, page) => sum + readFileSync(join(dir, page), 'utf8').split('\n').length - 1,
    0,
  );
}
