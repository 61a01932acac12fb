import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Sim, startSim } from '../sim/index.js';
import { RawClient, until, type WireMessage } from './client.js';

/**
 * The recorded traffic of the real server, sent to the simulator in an equivalent state: replies must be equal once
 * ids, times, durations and amounts are masked.
 */
const folder = new URL('../wire/', import.meta.url);
const actor = 'acme/yellowpages-scraper';

interface Recording {
  readonly case: string;
  readonly messages: readonly { readonly direction: 'request' | 'reply'; readonly message: WireMessage }[];
}
const load = (name: string) => JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')) as Recording;

interface Stage {
  readonly sim: Sim;
  readonly client: RawClient;
}
interface Case {
  readonly tools?: string;
  /** So that the probes for lagging counts do not take their 5 s. */
  readonly fast?: boolean;
  /** Brings the simulator into the state of the recording; returns the run it is about. */
  readonly arrange?: (stage: Stage) => Promise<string | undefined>;
  /** Milliseconds to let pass while each request is answered. */
  readonly passing?: readonly number[];
}

const withHelpers = `${actor},call-actor,runs`;
const starter = (url: string) => RawClient.connect(url, { tools: withHelpers });

/** A run started before, seen so many milliseconds after its start. */
function earlier(input: object, ms: number): Case['arrange'] {
  return async ({ sim }) => {
    const runId = await (await starter(sim.url)).start(actor, { location: 'x', ...input });
    sim.advance(ms);
    return runId;
  };
}
const finished = earlier({ durationSecs: 6, items: 37 }, 6500);
const withPicture = earlier(
  {
    durationSecs: 1,
    sim: { records: { OUTPUT: { done: true }, PIC: { contentType: 'image/png', base64: 'iVBORw==' } } },
  },
  1500,
);
const set =
  (patch: Parameters<Sim['set']>[0]): Case['arrange'] =>
  async ({ sim }) => {
    sim.set(patch);
    return undefined;
  };

const cases: Readonly<Record<string, Case>> = {
  'abort-finished-run': { arrange: finished },
  'abort-graceful': { arrange: earlier({ durationSecs: 30, items: 30 }, 1049), passing: [0, 3048] },
  'abort-running': { arrange: earlier({ durationSecs: 30 }, 20) },
  'abort-unknown-run': {},
  'dataset-metadata-unavailable': { arrange: earlier({ durationSecs: 6, sim: { noItemCount: true } }, 6500) },
  'empty-success': { fast: true, passing: [1030] },
  'items-empty': { arrange: earlier({ durationSecs: 1, items: 0 }, 1500) },
  'items-first-page': { arrange: finished },
  'items-last-page': { arrange: finished },
  'items-limit-zero': { arrange: finished },
  'items-negative-offset': { arrange: finished },
  'items-past-end': { arrange: finished },
  'items-unknown-dataset': {},
  'poll-401': {
    arrange: async (stage) => {
      const runId = await finished?.(stage);
      stage.sim.set({ tokens: ['another'], authMode: 'tool_error' });
      return runId;
    },
  },
  'poll-running': { arrange: earlier({ durationSecs: 6, items: 37 }, 2164) },
  'poll-succeeded': { arrange: finished },
  'poll-unknown-run': {},
  'poll-wait-above-cap': { arrange: finished },
  'record-binary': { arrange: withPicture },
  'record-json': { arrange: withPicture },
  'record-missing': { arrange: withPicture },
  'run-failed': { passing: [1013] },
  'run-timed-out': { passing: [1025] },
  'start-402': { arrange: set({ refusals: { [actor]: 'payment' } }) },
  'start-403': { arrange: set({ refusals: { [actor]: 'permissions' } }) },
  'start-call-actor-bad-input': { tools: withHelpers },
  'start-call-actor-wait0': { tools: withHelpers },
  'start-direct-tool-running': { passing: [2059] },
  'start-missing-argument': {},
  'start-reset-after-effect': {},
  'unknown-tool': {},
};

/** Recordings with a test of their own below. */
const apart = [
  'client-timeout-aborts-start',
  'initialize-and-tools-list',
  'progress-notifications',
  'run-list',
];

let slow: Sim;
let fast: Sim;
let sim: Sim;
beforeAll(async () => {
  // The recorded stub left a run READY for about a tenth of a second.
  slow = await startSim({ steering: { readySecs: 0.1 } });
  fast = await startSim({ steering: { readySecs: 0.1 }, speed: 1000 });
});
beforeEach(() => {
  sim = slow;
  for (const each of [slow, fast]) each.reset({ sessions: true });
});
afterAll(async () => {
  await Promise.all([slow.close(), fast.close()]);
});

async function stageFor(given: Case): Promise<Stage> {
  if (given.fast) sim = fast;
  return { sim, client: await RawClient.connect(sim.url, { tools: given.tools ?? actor }) };
}

describe('the simulator answers as the real server did', () => {
  it('has a case for every recording', () => {
    const recorded = readdirSync(folder).map((file) => file.replace('.json', ''));
    expect([...Object.keys(cases), ...apart].sort()).toEqual(recorded.sort());
  });

  it.each(Object.entries(cases))('%s', async (name, given) => {
    const stage = await stageFor(given);
    const runId = await given.arrange?.(stage);
    const { messages } = load(name);
    const requests = messages
      .filter(({ direction }) => direction === 'request')
      .map(({ message }) => message);
    const replies = messages
      .filter(({ direction, message }) => direction === 'reply' && message.method !== 'notifications/message')
      .map(({ message }) => message);
    const got: WireMessage[] = [];
    for (const [index, request] of requests.entries()) {
      const text = JSON.stringify(request).replaceAll(/run0\d{13}/g, runId ?? 'run00000000000001');
      const answered = stage.client.post(text);
      const ms = given.passing?.[index] ?? 0;
      if (ms > 0) {
        await until(() => sim.runs().some((run) => !run.final), 'the run is there');
        await pass(stage, ms);
      }
      got.push(...(await answered).messages);
    }
    expect(masked(got)).toEqual(masked(replies));
  });

  it('initialize-and-tools-list', async () => {
    const client = new RawClient(sim.url, { tools: actor });
    const [, first, , second] = load('initialize-and-tools-list').messages;
    const recorded = first?.message.result;
    const reply = await client.initialize(0);
    const got = reply.messages[0]?.result;
    expect(typeof got.instructions).toBe(typeof recorded.instructions);
    expect({ ...got, instructions: '' }).toEqual({ ...recorded, instructions: '' });
    expect(await client.tools()).toEqual(second?.message.result.tools);
  });

  it('progress-notifications: one at the start with the run id, then one a change of status', async () => {
    const { client } = await stageFor({});
    const { messages } = load('progress-notifications');
    const seen: WireMessage[] = [];
    const answered = client.post(messages[0]?.message ?? {}, { onMessage: (message) => seen.push(message) });
    await until(() => seen.length === 1, 'READY was told');
    sim.advance(150);
    await until(() => seen.length === 2, 'RUNNING was told');
    sim.advance(7011);
    await answered;
    expect(masked(seen)).toEqual(masked(messages.slice(1).map(({ message }) => message)));
  });

  it('client-timeout-aborts-start: a cancelled start takes its run along', async () => {
    const { client } = await stageFor({});
    const [start, cancel] = load('client-timeout-aborts-start').messages;
    const answered = client.post(start?.message ?? {});
    await until(() => sim.ledger.starts().length === 1, 'the run is there');
    expect((await client.post(cancel?.message ?? {})).status).toBe(202);
    expect((await answered).messages).toEqual([]);
    expect(sim.runs().map(({ status }) => status)).toEqual(['ABORTED']);
    expect(sim.ledger.count('cancelled')).toBe(1);
  });

  it('run-list: rows of the recorded shape', async () => {
    const client = await starter(sim.url);
    const inputs = [
      { durationSecs: 1, items: 3 },
      { durationSecs: 1, outcome: 'FAILED', statusMessage: 'Proxy exploded.' },
      { durationSecs: 1, outcome: 'TIMED-OUT' },
    ];
    for (const input of inputs) await client.start(actor, { location: 'x', ...input });
    sim.advance(2000);
    await client.start(actor, { location: 'x', durationSecs: 20 });
    sim.advance(100);
    const got = (await client.call('get-actor-run-list', { limit: 3, desc: true })).result;
    const recorded = load('run-list').messages[1]?.message.result;
    expect(Object.keys(got)).toEqual(Object.keys(recorded));
    expect(JSON.parse(got.content[0].text)).toEqual(got.structuredContent);
    expect(got.structuredContent).toMatchObject({ total: 4, offset: 0, limit: 3, desc: true, count: 3 });
    for (const row of got.structuredContent.items) {
      const like = recorded.structuredContent.items.find(
        (other: { status: string }) => other.status === row.status,
      );
      expect(Object.keys(row)).toEqual(Object.keys(like));
      expect(shapeOf({ ...row, statusMessage: null })).toEqual(shapeOf({ ...like, statusMessage: null }));
    }
    expect(got.structuredContent.items.map((row: { status: string }) => row.status)).toEqual([
      'RUNNING',
      'TIMED-OUT',
      'FAILED',
    ]);
  });
});

/** Lets time pass once the call is waiting for it. */
async function pass({ sim }: Stage, ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
  sim.advance(ms);
}

function masked(messages: readonly WireMessage[]): unknown {
  const quote = '\\\\?"';
  return JSON.parse(
    JSON.stringify(messages)
      .replaceAll(
        new RegExp(`${quote}_i${quote}:\\d+,${quote}_run${quote}:${quote}run\\d{14}${quote},`, 'g'),
        '',
      )
      .replaceAll(/run\d{14}/g, 'RUN')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replaceAll(/((?:runTimeSecs|computeUnits|usageTotalUsd|ACTOR_COMPUTE_UNITS)\\?":)[\d.e-]+/g, '$10')
      .replaceAll(/\b(in|after|for) [\d.]+s\b/g, '$1 Ns'),
  );
}

function shapeOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shapeOf(inner)]));
}
