import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { loadConfig } from '../../src/config.js';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import type { Daemon } from '../../workers/daemon.js';
import { Fleet } from '../workers/fleet.js';
import { defaultActor } from './apify-api-stub.js';
import { RealApifyServer } from './apify-server.js';

const tool = 'acme/yellowpages-scraper';
const png = Buffer.from('89504e470d0a1a0a', 'hex');
const records = {
  OUTPUT: { contentType: 'application/json', body: '{"found":3}' },
  NOTE: { contentType: 'text/plain', body: 'hello' },
  PIC: { contentType: 'image/png', body: png.toString('base64'), binary: true },
  BIG: { contentType: 'image/png', body: '', bytes: 300_000 },
};

interface Case {
  readonly job: Record<string, unknown>;
  readonly expected: Partial<OutcomeDocument>;
  readonly message: RegExp;
  /** Runs the stub of the API saw for it; one when absent. */
  readonly starts?: number;
}

const input = (id: string, plan: Record<string, unknown> = {}) => ({ location: id, ...plan });

/** A job's input names the job, which is how the ledger's starts are told apart. */
const cases: Record<string, Case> = {
  polls: {
    job: { input: input('polls', { durationSecs: 3.5, items: 37, itemBytes: 200 }), meta: { row: 17 } },
    expected: { outcome: 'succeeded', items: 37, attempt: 1, runStatus: 'SUCCEEDED', meta: { row: 17 } },
    message: /^37 items in \d+ pages\.$/,
  },
  fields: {
    job: { input: input('fields', { items: 9 }), fields: ['idx', 'phone'] },
    expected: { outcome: 'succeeded', items: 9, pages: 1 },
    message: /9 items/,
  },
  empty: {
    job: { input: input('empty', { statusMessage: 'Finished! Total 0 results' }) },
    expected: { outcome: 'empty', items: 0, pages: 0, runStatus: 'SUCCEEDED' },
    message: /holds no items.*Finished! Total 0 results/,
  },
  'empty-with-lag': {
    job: { input: input('empty-with-lag', { lagSecs: 3 }) },
    expected: { outcome: 'empty', items: 0 },
    message: /holds no items/,
  },
  lag: {
    job: { input: input('lag', { items: 12, lagSecs: 4.5 }) },
    expected: { outcome: 'succeeded', items: 12 },
    message: /12 items/,
  },
  failed: {
    job: { input: input('failed', { items: 4, outcome: 'FAILED', statusMessage: 'Proxy exploded.' }) },
    expected: { outcome: 'failed', items: 4, runStatus: 'FAILED', statusMessage: 'Proxy exploded.' },
    message: /FAILED.*its 4 items were kept.*Proxy exploded/,
  },
  'timed-out': {
    job: {
      input: input('timed-out', { durationSecs: 60, items: 300 }),
      options: { timeout: 2, memory: 256, maxItems: 900 },
    },
    expected: { outcome: 'failed', runStatus: 'TIMED-OUT', items: 10 },
    message: /TIMED-OUT.*its 10 items were kept/,
  },
  deadline: {
    job: { input: input('deadline', { durationSecs: 600, items: 6_000, abortSecs: 0.5 }), deadline: 2 },
    expected: { outcome: 'deadline_exceeded', runStatus: 'ABORTED' },
    message: /^Aborted after 2s: the run was still under way with \d+ items; /,
  },
  'against-the-schema': {
    job: { input: { location: { city: 'Austin' } } },
    expected: { outcome: 'rejected', runId: null },
    message: /does not fit the tool's schema: .*location.*Nothing was spent/,
    starts: 0,
  },
  refused: {
    job: { tool: 'acme/strict', input: input('refused') },
    expected: { outcome: 'rejected', runId: null },
    message: /server refused this scrape: .*Field input\.startUrls is required/,
    starts: 0,
  },
  coerced: {
    job: { input: input('coerced', { items: '4' }) },
    expected: { outcome: 'succeeded', items: 4 },
    message: /4 items/,
  },
  'as-large-as-may-be': {
    job: { input: input('as-large-as-may-be', { items: 1, note: 'x'.repeat(98_000) }) },
    expected: { outcome: 'succeeded', items: 1 },
    message: /1 item /,
  },
  records: {
    job: {
      input: input('records', { items: 1, records }),
      records: ['OUTPUT', 'NOTE', 'PIC', 'BIG', 'NONE'],
    },
    expected: { outcome: 'succeeded', items: 1 },
    message: /1 item /,
  },
  'rate-limited': {
    job: { tool: 'acme/limited', input: input('rate-limited', { items: 2 }) },
    expected: { outcome: 'succeeded', items: 2 },
    message: /2 items/,
  },
  'too-many-runs': {
    job: { server: 'busy', tool: 'acme/busy', input: input('too-many-runs', { items: 2 }) },
    expected: { outcome: 'succeeded', items: 2, attempt: 1 },
    message: /2 items/,
  },
  direct: {
    job: { server: 'direct', input: input('direct', { durationSecs: 1, items: 5 }) },
    expected: { outcome: 'succeeded', items: 5 },
    message: /5 items/,
  },
  'direct-with-options': {
    job: { server: 'direct', input: input('direct-with-options'), options: { memory: 256 } },
    expected: { outcome: 'rejected', runId: null },
    message: /options: expected none, .*via: direct, which takes no options/,
    starts: 0,
  },
  cancelled: {
    job: { input: input('cancelled', { durationSecs: 600, abortSecs: 0.5 }) },
    expected: { outcome: 'cancelled', runStatus: 'ABORTED' },
    message: /Cancelled/,
  },
};

/** Two scrapes that ask for the same: each gets a run of its own. */
const twins = ['twin-1', 'twin-2'];

/** With polls that the server holds for as long as it is allowed to. */
const patientCases: Record<string, Case> = {
  'long-poll': {
    job: { input: input('long-poll', { durationSecs: 2.5, items: 3 }) },
    expected: { outcome: 'succeeded', items: 3, polls: 1 },
    message: /3 items/,
  },
  'long-poll-empty': {
    job: { input: input('long-poll-empty', { durationSecs: 1, lagSecs: 2 }) },
    expected: { outcome: 'empty', polls: 1 },
    message: /holds no items/,
  },
  'long-poll-deadline': {
    job: { input: input('long-poll-deadline', { durationSecs: 600, items: 600 }), deadline: 3 },
    expected: { outcome: 'deadline_exceeded', runStatus: 'ABORTED' },
    message: /^Aborted after 3s/,
  },
  'long-poll-cancelled': {
    job: { input: input('long-poll-cancelled', { durationSecs: 600 }) },
    expected: { outcome: 'cancelled', runStatus: 'ABORTED' },
    message: /Cancelled/,
  },
};

let real: RealApifyServer;
let fleet: Fleet;
let patient: Fleet;

beforeAll(async () => {
  const names = ['yellowpages-scraper', 'strict', 'limited', 'busy'];
  real = await RealApifyServer.start(names.map((name) => ({ ...defaultActor, name })));
  refuse('strict', 400, 'invalid-input', 'Input is not valid: Field input.startUrls is required');
  refuse('limited', 429, 'rate-limit-exceeded', 'You have exceeded the rate limit', 2);
  refuse('busy', 402, 'concurrent-runs-limit-exceeded', 'You exceeded the limit for concurrent runs');
  const server = { url: real.url, token: 'any-token', limits: { runs: 40, requestsPerSecond: 1000 } };
  const apify = { ...server, tools: [tool, 'acme/strict', 'acme/limited'] };
  [fleet, patient] = await Promise.all([
    Fleet.inFrontOf(
      {
        apify,
        direct: { ...server, tools: [tool], via: 'direct' },
        busy: { ...server, tools: ['acme/busy'] },
      },
      { results: { pageBytes: 4096 } },
    ),
    Fleet.inFrontOf({ apify }, { poll: { interval: '1s', waitSecs: 45 } }),
  ]);
  await Promise.all([fleet.daemon(), patient.daemon()]);
  const submit = (to: Fleet, jobs: Record<string, Case>) =>
    Object.entries(jobs).map(([id, { job }]) => to.add(id, { server: 'apify', tool, ...job }));
  const pair = twins.map((id) =>
    fleet.add(id, { server: 'apify', tool, input: input('twin', { durationSecs: 1, items: 3 }) }),
  );
  await Promise.all([...submit(fleet, cases), ...submit(patient, patientCases), ...pair]);
  await Promise.all([cancel(fleet, 'cancelled'), cancel(patient, 'long-poll-cancelled')]);
});

afterAll(async () => {
  await Promise.all([fleet?.close(), patient?.close()]);
  await real?.stop();
});

describe('the workers at the real Apify MCP server', () => {
  it.each(Object.entries(cases))('%s', (id, expected) => check(fleet, id, expected));

  it.each(Object.entries(patientCases))('%s', (id, expected) => check(patient, id, expected));

  it('gives scrapes of equal input a run each', async () => {
    const outcomes = await Promise.all(twins.map((id) => fleet.outcome(id, 60_000)));
    for (const outcome of outcomes) expect(outcome).toMatchObject({ outcome: 'succeeded', items: 3 });
    const runs = outcomes.map(({ runId }) => runId);
    expect(new Set(runs).size).toBe(2);
    expect(runs.toSorted()).toEqual(
      startsOf('twin')
        .map(({ runId }) => runId)
        .toSorted(),
    );
    for (const id of twins) expectOnce(fleet, await fleet.outcome(id, 60_000));
  });

  it('polls a run several times and reads its items in pages', async () => {
    const outcome = await fleet.outcome('polls');
    expect(outcome.polls).toBeGreaterThan(1);
    expect(outcome.pages).toBeGreaterThan(2);
  });

  it('reads the fields asked for and no others', () => {
    expect(pagesOf(fleet, 'fields').flat()[8]).toEqual({ idx: 8, phone: '+1-555-0008' });
  });

  it('sends run options, and always a timeout', () => {
    expect(startsOf('timed-out')[0]?.query).toMatchObject({ timeout: '2', memory: '256', maxItems: '900' });
    expect(startsOf('deadline')[0]?.query).toMatchObject({ timeout: '62' });
  });

  it('writes records of every kind, and says which it could not', async () => {
    const dir = join(fleet.resultsOf('records'), 'records');
    expect(readdirSync(dir).sort()).toEqual(['NOTE.txt', 'OUTPUT.json', 'PIC.png']);
    expect(JSON.parse(readFileSync(join(dir, 'OUTPUT.json'), 'utf8'))).toEqual({ found: 3 });
    expect(readFileSync(join(dir, 'NOTE.txt'), 'utf8')).toBe('hello');
    expect(readFileSync(join(dir, 'PIC.png'))).toEqual(png);
    expect((await fleet.outcome('records')).warnings).toEqual([
      expect.stringMatching(/^Record BIG is too large .* keeps it at https?:/),
      "Record NONE does not exist in the run's key-value store.",
    ]);
  });

  it('keeps waitSecs under what the server allows', async () => {
    const { port } = (patient.daemons[0] as Daemon).ctx.server('apify');
    expect(await port.describe()).toMatchObject({ ok: true, value: { waitSecsCap: 45 } });
    const { runId } = await patient.outcome('long-poll');
    expect(await port.poll(runId as string, { waitSecs: 60 })).toMatchObject({ ok: true });
    const text = JSON.stringify({ servers: { apify: { tools: [tool] } }, poll: { waitSecs: 46 } });
    expect(() => loadConfig({ text, cwd: '/', env: {} })).toThrow(/poll\.waitSecs.*45/s);
  });

  it('leaves no run under way, no slot taken and no abort too many', async () => {
    expect(real.stub.active).toEqual([]);
    expect(real.stub.clearFaults()).toBe(0);
    const aborted = ['deadline', 'cancelled', 'long-poll-deadline', 'long-poll-cancelled'];
    expect(new Set(real.stub.ledger.aborts.map(({ runId }) => runId))).toEqual(
      new Set(aborted.map((id) => startsOf(id)[0]?.runId)),
    );
    for (const { ctx } of [...fleet.daemons, ...patient.daemons]) {
      for (const name of Object.keys(ctx.config.servers)) {
        expect(await ctx.redis.zcard(ctx.keys.slots(name))).toBe(0);
        expect(await ctx.holds.state(name)).toMatchObject({ hold: null, tools: {} });
      }
    }
  });
});

/** The next starts of an Actor get this from the API. */
function refuse(actor: string, status: number, type: string, message: string, times = 1): void {
  real.stub.failNext({ on: `POST /v2/actors/acme~${actor}/runs`, status, type, message, times });
}

async function cancel(of: Fleet, id: string): Promise<void> {
  await vi.waitFor(() => expect(startsOf(id)).toHaveLength(1), 60_000);
  await of.daemons[0]?.ctx.cancel(`default.${id}`);
}

async function check(of: Fleet, id: string, { expected, message, starts = 1 }: Case): Promise<void> {
  const outcome = await of.outcome(id, 100_000);
  expect(outcome).toMatchObject(expected);
  expect(outcome.message).toMatch(message);
  const started = startsOf(id);
  expect(started).toHaveLength(starts);
  expect(outcome.runId).toBe(started[0]?.runId ?? null);
  expectOnce(of, outcome);
}

/** The pages hold each item once and in order, and each was read from the API as one slice. */
function expectOnce(of: Fleet, { id, items, pages, datasetId }: OutcomeDocument): void {
  const written = pagesOf(of, id);
  expect(written).toHaveLength(pages);
  const indices = written.flat().map(({ idx }) => idx);
  expect(indices).toEqual(Array.from({ length: items }, (_, index) => index));
  const reads = real.stub.ledger.reads.filter((read) => read.datasetId === datasetId);
  for (const page of written) {
    const slice = reads.find(({ offset, limit }) => offset === page[0]?.idx && (limit ?? 0) >= page.length);
    expect(slice).toBeDefined();
  }
}

const startsOf = (location: string) =>
  real.stub.ledger.starts.filter(({ input }) => (input as { location: unknown }).location === location);

function pagesOf(of: Fleet, id: string): { idx: number }[][] {
  const dir = of.resultsOf(id);
  const names = readdirSync(dir).filter((name) => name.startsWith('page-'));
  return names.sort().map((name) => {
    const lines = readFileSync(join(dir, name), 'utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line) as { idx: number });
  });
}
