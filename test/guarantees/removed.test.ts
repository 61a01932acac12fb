/** Promise 1: a job that its producer removed is settled all the same, and its run is aborted. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it, vi } from 'vitest';
import type { Attempt } from '../../src/run/attempt.js';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import type { Bench } from '../workers/harness.js';
import { broken, input } from './broken.js';

interface Case {
  readonly job: Record<string, unknown>;
  /** BullMQ's id when it is not `default.<id>`. */
  readonly jobId?: string;
  readonly when: (attempt: Attempt | null) => boolean;
  readonly aborted: boolean;
  readonly outcome: string;
  /** Keep the children, as a careful producer may. */
  readonly alone?: true;
}

const long = { runSecs: 600 };
const failing = { status: 'FAILED', items: 0, runSecs: 0.3 };
const cases: Record<string, Case> = {
  running: {
    job: { input: input('running', long) },
    when: (attempt) => attempt?.phase === 'running',
    aborted: true,
    outcome: 'cancelled',
  },
  'removed-without-children': {
    job: { input: input('removed-without-children', { runSecs: 2, items: 3 }) },
    when: (attempt) => attempt?.phase === 'running',
    aborted: true,
    outcome: 'cancelled',
    alone: true,
  },
  reading: {
    job: { input: input('reading', { runSecs: 0.3 }) },
    when: (attempt) => attempt?.phase === 'reading',
    aborted: false,
    outcome: 'cancelled',
  },
  'next-attempt': {
    job: { input: input('next-attempt', failing), retries: 1 },
    when: (attempt) => attempt?.n === 2,
    aborted: false,
    outcome: 'cancelled',
  },
  queued: {
    job: { tool: 'compass/crawler-google-places', input: { searchStringsArray: ['queued'] } },
    when: (attempt) => attempt?.phase === 'queued',
    aborted: false,
    outcome: 'cancelled',
  },
  'queued-by-another-name': {
    job: { tool: 'compass/crawler-google-places', input: { searchStringsArray: ['another'] } },
    jobId: 'queued-by-another-name',
    when: (attempt) => attempt?.phase === 'queued',
    aborted: false,
    outcome: 'cancelled',
  },
};

describe('a job that its producer removed', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await broken({ config: { retry: { backoff: '1h' } } }, { reapEveryMs: 400 });
    const { ctx } = bench.daemons[0] as Bench['daemons'][number];
    // Start jobs of the other tool stay where they are.
    await ctx.holds.pause('apify', 'compass/crawler-google-places', Date.now());
    await Promise.all(
      Object.entries(cases).map(([id, { job, jobId }]) => bench.add(id, job, jobId ? { jobId } : {})),
    );
  });
  afterAll(() => bench?.close());

  it.concurrent.for(Object.entries(cases))('%s', { timeout: 40_000 }, async ([id, one], { expect }) => {
    const { ctx } = bench.daemons[0] as Bench['daemons'][number];
    const attempt = async () => (await ctx.store.load(`default.${id}`)).attempt;
    await expect.poll(async () => one.when(await attempt()), { timeout: 20_000, interval: 20 }).toBe(true);
    const job = await bench.queue.getJob(one.jobId ?? `default.${id}`);
    // A child in a worker's hands keeps the job for a moment.
    await vi.waitFor(() => job?.remove(one.alone ? { removeChildren: false } : {}), { timeout: 5_000 });
    const file = join(bench.resultsOf(id), 'outcome.json');
    // A minute by default: the spans here are a fifteenth.
    await expect.poll(() => existsSync(file), { timeout: 20_000 }).toBe(true);
    const outcome = JSON.parse(readFileSync(file, 'utf8')) as OutcomeDocument;
    expect(outcome).toMatchObject({ id, outcome: one.outcome });
    const starts = bench.sim.ledger
      .entries({ kind: ['start'] })
      .filter((entry) => entry.input?.includes(`"${id}"`));
    const aborts = starts.filter(
      ({ runId }) => bench.sim.ledger.entries({ kind: ['abort'], runId }).length > 0,
    );
    expect(aborts.length > 0).toBe(one.aborted);
    await expect.poll(() => ctx.redis.pttl(ctx.keys.attempt(`default.${id}`))).toBeGreaterThan(0);
    await expect.poll(() => ctx.redis.zscore(ctx.keys.slots('apify'), `default.${id}`)).toBeNull();
  });
});
