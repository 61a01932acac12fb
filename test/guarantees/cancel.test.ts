/** Promise 5: a cancel takes hold within 2 s in every stage, from any process; what was cancelled never starts later. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AttemptStore } from '../../src/queue/attempt-store.js';
import { type CancelDeps, cancelBatch, cancelScrape } from '../../src/queue/cancel.js';
import { Keys } from '../../src/queue/names.js';
import { Queues } from '../../src/queue/queues.js';
import { withScripts } from '../../src/queue/scripts.js';
import type { Attempt } from '../../src/run/attempt.js';
import { type Sim, startSim } from '../sim/index.js';
import { Fleet } from '../workers/fleet.js';
import { yellowPages } from '../workers/harness.js';
import { input, quick } from './broken.js';

interface Field {
  readonly sim: Sim;
  readonly fleet: Fleet;
  /** What another process, a command for one, uses to cancel. */
  readonly deps: CancelDeps;
  close(): Promise<void>;
}

/** `full` has one slot, `paused` is paused for the tool; runs are polled as often as `interval` says. */
async function open(interval: string): Promise<Field> {
  const sim = await startSim({ conditions: { mix: 'fixed' } });
  const one = { url: sim.url, token: 't', tools: [yellowPages] };
  const limits = (runs: number) => ({ limits: { runs, requestsPerSecond: 1_000 } });
  const fleet = await Fleet.inFrontOf(
    { apify: { ...one, ...limits(20) }, full: { ...one, ...limits(1) }, paused: { ...one, ...limits(5) } },
    {
      poll: { interval },
      start: { timeout: '5s' },
      retry: { backoff: '1h' },
      results: { dir: 'results', pageBytes: 4_096 },
    },
  );
  await fleet.daemon({ timing: quick });
  const redis = withScripts(fleet.client.duplicate());
  const keys = new Keys(fleet.config.prefix);
  const servers = Object.keys(fleet.config.servers);
  const queues = new Queues(redis, keys, servers, () => {});
  const deps = { redis, keys, queues, store: new AttemptStore(redis, keys), servers };
  return {
    sim,
    fleet,
    deps,
    async close() {
      await fleet.close();
      redis.disconnect();
      await sim.close();
    },
  };
}

function add(field: Field, id: string, { sim, options, ...job }: Job): Promise<void> {
  return field.fleet.add(id, { server: 'apify', tool: yellowPages, ...job, input: input(id, sim) }, options);
}

interface Job {
  readonly sim: Record<string, unknown>;
  readonly options?: Record<string, unknown>;
  readonly [key: string]: unknown;
}

/** What the server saw of a scrape. */
function ledgerOf(sim: Sim, id: string) {
  const starts = sim.ledger.entries({ kind: ['start'] }).filter(({ input }) => input?.includes(`"${id}"`));
  const runIds = new Set(starts.map(({ runId }) => runId));
  const aborts = sim.ledger.entries({ kind: ['abort'] }).filter(({ runId }) => runIds.has(runId));
  return { starts, aborts };
}

interface Case {
  readonly job: Job;
  /** Polled once an hour, so that no poll finds the cancel by chance. */
  readonly seldom?: true;
  /** The stage has been reached. */
  readonly when: (attempt: Attempt | null, sim: Sim) => boolean;
  /** Starts, and whether there is an abort, in the end. */
  readonly starts: number;
  readonly aborted: boolean;
  /** Time on top of the two seconds that the stage has to itself. */
  readonly extraMs?: number;
  readonly message: RegExp;
}

const long = { runSecs: 600, items: 3 };
const many = { items: 40, itemBytes: 2_000, runSecs: 0.3 };
const slowReads = { faults: [{ op: 'read', kind: 'slow', ms: 400, times: 1_000 }] };
const unspent = /^Cancelled before a run was started; nothing was spent\.$/;
const aborted = /^Cancelled: the run is ABORTED; 0 items had been written and stay\./;

const cases: Record<string, Case> = {
  'waiting in the public queue': {
    job: { sim: long, options: { delay: 3_600_000 } },
    when: () => true,
    starts: 0,
    aborted: false,
    message: unspent,
  },
  'its start queued': {
    job: { sim: long, server: 'full' },
    seldom: true,
    when: (attempt) => attempt?.phase === 'queued',
    starts: 0,
    aborted: false,
    message: unspent,
  },
  'its start set aside': {
    job: { sim: long, server: 'paused' },
    when: (attempt) => attempt?.phase === 'queued',
    starts: 0,
    aborted: false,
    message: unspent,
  },
  'its start under way': {
    job: { sim: { ...long, faults: [{ op: 'start', kind: 'slow', ms: 2_500 }] } },
    // Before the server has the call a cancel still keeps it from being made.
    when: (attempt, sim) =>
      attempt?.phase === 'starting' &&
      sim.ledger.entries({ kind: ['fault'] }).some(({ key }) => key === 'start'),
    starts: 1,
    aborted: true,
    extraMs: 2_500,
    message: aborted,
  },
  'running, between two polls': {
    job: { sim: long },
    seldom: true,
    when: (attempt) => attempt?.phase === 'running',
    starts: 1,
    aborted: true,
    message: aborted,
  },
  'a poll under way': {
    job: { sim: { ...long, faults: [{ op: 'poll', kind: 'slow', ms: 6_000 }] } },
    when: (_attempt, sim) => sim.ledger.entries({ kind: ['fault'] }).some(({ key }) => key === 'poll'),
    starts: 1,
    aborted: true,
    message: aborted,
  },
  'aborting at its deadline': {
    job: { sim: { ...long, abortSecs: 4 }, deadline: 1 },
    when: (attempt) => attempt?.phase === 'aborting',
    starts: 1,
    aborted: true,
    message: aborted,
  },
  'reading, between two pages': {
    job: { sim: { ...many, ...slowReads } },
    when: (attempt) => attempt?.phase === 'reading' && attempt.pages >= 2,
    starts: 1,
    aborted: false,
    message: /^Cancelled: the run is SUCCEEDED; [1-9]\d* items had been written and stay\./,
  },
  'waiting for its verified end': {
    job: { sim: { items: 0, runSecs: 0.3 } },
    when: (attempt) => attempt?.phase === 'reading',
    starts: 1,
    aborted: false,
    message: /^Cancelled: the run is SUCCEEDED; 0 items had been written and stay\./,
  },
  'waiting for its next attempt': {
    job: { sim: { status: 'FAILED', items: 0, runSecs: 0.3 }, retries: 1 },
    when: (attempt) => attempt?.n === 2,
    starts: 1,
    aborted: false,
    message: /^Cancelled before attempt 2 was started; what attempt 1 had spent stays spent\.$/,
  },
};
const idOf = (name: string) => name.replaceAll(/[^a-z0-9]+/g, '-');

describe('a cancel', () => {
  let seldom: Field;
  let often: Field;
  beforeAll(async () => {
    [seldom, often] = await Promise.all([open('1h'), open('1s')]);
    for (const field of [seldom, often]) {
      const { ctx } = field.fleet.daemons[0] as Fleet['daemons'][number];
      await ctx.holds.pause('paused', yellowPages, Date.now());
    }
    // Live workers, not ones that begin: code is loaded and a session is open when the clock runs.
    await Promise.all([
      add(seldom, 'warm-up', { sim: { refuse: 'bad_input' } }),
      add(often, 'warm-up', { sim: { runSecs: 0.1, items: 0 } }),
    ]);
    await Promise.all([seldom.fleet.outcome('warm-up'), often.fleet.outcome('warm-up')]);
    await add(seldom, 'filler', { server: 'full', sim: long });
    await vi.waitFor(() => expect(seldom.sim.stats().inFlight).toBe(1), 10_000);
    await Promise.all(
      Object.entries(cases).map(([name, one]) => add(one.seldom ? seldom : often, idOf(name), one.job)),
    );
  });
  afterAll(() => Promise.all([seldom?.close(), often?.close()]));

  it.concurrent.for(Object.entries(cases))('%s', { timeout: 40_000 }, async ([name, one], { expect }) => {
    const { sim, fleet, deps } = one.seldom ? seldom : often;
    const id = idOf(name);
    const reached = async () => one.when((await deps.store.load(`default.${id}`)).attempt, sim);
    await expect.poll(reached, { timeout: 15_000, interval: 20 }).toBe(true);
    const began = Date.now();
    expect(await cancelScrape(deps, `default.${id}`)).toBe('cancelling');
    const outcome = await fleet.outcome(id, 15_000);
    const settledIn = Date.now() - began;
    expect(outcome.outcome).toBe('cancelled');
    expect(outcome.message).toMatch(one.message);
    const { starts, aborts } = ledgerOf(sim, id);
    expect([starts.length, aborts.length > 0]).toEqual([one.starts, one.aborted]);
    // A run ends by its abort; the outcome may have to wait for a call under way.
    const held = one.aborted ? (aborts[0]?.at ?? 0) - began : settledIn;
    expect(held).toBeLessThan(2_000 + (one.extraMs ?? 0));
    expect(await cancelScrape(deps, `default.${id}`)).toBe('settled');
  });
});

describe('a cancel of a whole batch', () => {
  let field: Field;
  beforeAll(async () => {
    field = await open('1h');
  });
  afterAll(() => field?.close());

  it('ends 500 scrapes, started or not, and no other', { timeout: 50_000 }, async () => {
    const { fleet, sim, deps } = field;
    const ids = Array.from({ length: 500 }, (_, index) => `many.s-${index}`);
    await fleet.queue.addBulk(
      ids.map((jobId) => ({
        name: 'scrape',
        data: { server: 'apify', tool: yellowPages, batch: 'many', input: input(jobId, long) },
        opts: { jobId },
      })),
    );
    await vi.waitFor(() => expect(sim.stats().inFlight).toBe(20), 20_000);
    await vi.waitFor(async () => expect(await fleet.queue.getWaitingChildrenCount()).toBe(500), 20_000);
    await add(field, 'other', { sim: { runSecs: 0.3, items: 0 }, server: 'full' });
    const began = Date.now();
    expect(await cancelBatch(deps, 'many', began)).toBe(500);
    const outcomes = await Promise.all(ids.map((id) => fleet.outcome(id, 30_000)));
    expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['cancelled']));
    const { ledger } = sim;
    const last = (kind: string) =>
      Math.max(0, ...ledger.entries({ kind: [kind] }).map(({ at }) => at - began));
    expect(ledger.entries({ kind: ['abort'] }).length).toBeGreaterThanOrEqual(20);
    expect(last('abort')).toBeLessThan(2_000);
    expect(ledger.starts(yellowPages).filter(({ input }) => input?.includes('many.')).length).toBeLessThan(
      60,
    );
    expect(sim.runs().filter(({ final }) => !final).length).toBeLessThanOrEqual(1);
    const { attempt } = await deps.store.load('default.other');
    expect(attempt?.cancelledAt).toBeNull();
    await vi.waitFor(async () => expect(await deps.redis.zcard(deps.keys.slots('apify'))).toBe(0), 5_000);
  });
});

describe('a cancelled scrape', () => {
  let field: Field;
  beforeAll(async () => {
    field = await open('1s');
  });
  afterAll(() => field?.close());

  it('never starts later, however long its job waits before a worker looks at it', async () => {
    const { fleet, sim, deps } = field;
    await Promise.all(fleet.daemons.splice(0).map((daemon) => daemon.stop(2_000)));
    await add(field, 'unseen', { sim: long });
    await fleet.queue.add(
      'scrape',
      { server: 'apify', tool: yellowPages, input: input('own', long) },
      { jobId: 'own' },
    );
    for (const key of ['default.unseen', 'default.own']) {
      expect(await cancelScrape(deps, key)).toBe('cancelling');
      // Far more than a backlog takes.
      expect(await deps.redis.pttl(deps.keys.attempt(key))).toBeGreaterThan(7 * 24 * 3_600_000);
    }
    expect(await cancelScrape(deps, 'default.nobody')).toBe('unknown');
    expect(await deps.redis.pttl(deps.keys.attempt('default.nobody'))).toBeLessThanOrEqual(60_000);
    await fleet.daemon({ timing: quick });
    expect(await fleet.outcome('unseen')).toMatchObject({ outcome: 'cancelled', runId: null });
    const own = await fleet.queue.getJob('own');
    await expect.poll(() => own?.isFailed(), { timeout: 5_000 }).toBe(true);
    expect((await fleet.queue.getJob('own'))?.failedReason).toMatch(unspent);
    expect(sim.stats().starts).toBe(0);
  });

  it('is not started again by a retry that was decided just before', async () => {
    const { deps } = field;
    const key = 'default.ending';
    const { redis, keys } = deps;
    const hash = { n: '1', ph: '5', at: '1', dg: 'x', cx: '7' };
    await redis.hset(keys.attempt(key), hash);
    await redis.set(keys.lock('scrape', key), 'token');
    const { attempt } = await deps.store.load(key);
    if (attempt === null) throw new Error('no attempt');
    const lock = { key: keys.lock('scrape', key), token: 'token' };
    expect(await deps.store.nextAttempt(attempt, lock, null, null, 1_000)).toBe(true);
    expect((await deps.store.load(key)).attempt).toMatchObject({ n: 2, phase: 'queued', cancelledAt: 7 });
  });
});
