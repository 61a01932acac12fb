import { hours, minutes } from '../../grafana/src/scale.js';
import type { Sim } from '../sim/index.js';
import { seasoned } from './history.js';
import type { Incident } from './incident.js';
import { yellowPages } from './traffic.js';

const nothing = () => {};
/** Ends runs that would go on without an end, those that still wait for their start too. */
function finishAll(sim: Sim, items: number): void {
  const finish = () => {
    for (const { runId, final } of sim.runs()) if (!final) sim.finish(runId, 'SUCCEEDED', items);
  };
  finish();
  const timer = setInterval(finish, 1_000);
  timer.unref();
  setTimeout(() => clearInterval(timer), 120_000).unref();
}

/** Of the server that refuses connections. */
let openAgain: () => Promise<void> = async () => {};

/** Incidents of one server or tool, in the order in which they are rehearsed: together, each on a server of its own. */
export const serverIncidents: readonly Incident[] = [
  {
    name: 'quiet-night',
    what: 'steady traffic; 5 % of runs empty, 7 % failed or timed out',
    expected: null,
    scope: 'server',
    span: hours(1.5),
    cause: nothing,
    heal: nothing,
  },
  {
    name: 'few-scrapes',
    what: 'a handful of scrapes, half of them empty, and a failed call',
    expected: null,
    scope: 'server',
    everyMs: 20_000,
    span: hours(1.5),
    cause: ({ sim, traffic }) => {
      traffic.shape = (index) => ({
        tool: yellowPages,
        input: { search: `roofers ${index}`, sim: { runSecs: 1, items: index % 2 === 0 ? 0 : 8 } },
      });
      sim.faults.add({ kind: 'http_502', op: 'poll', times: 1 });
      sim.faults.add({ kind: 'rpc_internal', op: 'poll', times: 1 });
    },
    heal: nothing,
  },
  {
    name: 'idle-morning',
    what: 'a batch of 200 scrapes at once, then nothing',
    expected: null,
    scope: 'server',
    everyMs: null,
    config: { limits: { runs: 40 } },
    span: hours(1.5),
    before: ({ traffic }) => traffic.submit(200),
    cause: nothing,
    heal: nothing,
  },
  {
    name: 'runs-empty',
    what: 'the site behind the Actor turns empty: runs succeed with nothing',
    expected: 'TrawlRunsEmpty',
    scope: 'server',
    everyMs: 1_500,
    cause: ({ sim }) => sim.set({ emptyTools: [yellowPages] }),
    heal: ({ sim }) => sim.set({ emptyTools: [] }),
  },
  {
    name: 'protocol-errors',
    what: 'two of three calls are answered with JSON-RPC error -32603',
    expected: 'TrawlProtocolErrors',
    scope: 'server',
    cause: ({ sim }) => {
      sim.faults.add({ kind: 'rpc_internal', op: 'any', probability: 0.66 });
    },
    along: ['TrawlStartsUnanswered'],
    heal: ({ sim }) => sim.faults.clear(),
  },
  {
    name: 'schema-changed',
    what: 'the tool requires a field all of a sudden: -32602',
    expected: 'TrawlSchemaChanged',
    scope: 'server',
    cause: ({ sim }) => sim.set({ changedSchemas: [yellowPages] }),
    heal: ({ sim }) => sim.set({ changedSchemas: [] }),
  },
  {
    name: 'inputs-rejected',
    what: "a producer's inputs do not fit the tool's schema",
    expected: 'TrawlInputsRejected',
    scope: 'server',
    cause: ({ traffic }) => {
      traffic.shape = (index) => ({ tool: yellowPages, input: { search: ['plumbers', index] } });
    },
    heal: ({ traffic }) => traffic.asUsual(),
  },
  {
    name: 'token-revoked',
    what: 'the token is revoked',
    expected: 'TrawlTokenRevoked',
    scope: 'server',
    cause: ({ sim }) => sim.set({ tokens: [] }),
    heal: ({ sim }) => sim.set({ tokens: null }),
  },
  {
    name: 'payment',
    what: "the account's spending limit is reached",
    expected: 'TrawlPaymentRequired',
    scope: 'server',
    cause: ({ sim }) => sim.set({ refusals: { '*': 'platform_feature' } }),
    heal: ({ sim }) => sim.set({ refusals: {} }),
  },
  {
    name: 'unreachable',
    what: 'the server refuses connections',
    expected: 'TrawlServerUnreachable',
    scope: 'server',
    cause: async ({ sim }) => {
      openAgain = await sim.shut();
    },
    heal: () => openAgain(),
  },
  {
    name: 'tools-missing',
    what: 'the server comes back from a restart with an empty list of tools',
    expected: 'TrawlToolsMissing',
    scope: 'server',
    cause: ({ sim }) => {
      sim.set({ toolsListEmpty: true });
      sim.dropSessions();
    },
    heal: ({ sim }) => sim.set({ toolsListEmpty: false }),
  },
  {
    name: 'server-errors',
    what: 'half of the calls are answered with HTTP 503',
    expected: 'TrawlServerFailing',
    scope: 'server',
    cause: ({ sim }) => {
      sim.faults.add({ kind: 'http_503', op: 'any', probability: 0.5, retryAfter: 'none' });
    },
    along: ['TrawlStartsUnanswered'],
    heal: ({ sim }) => sim.faults.clear(),
  },
  {
    name: 'server-hangs',
    what: 'the server takes calls and answers none',
    expected: 'TrawlServerFailing',
    scope: 'server',
    // Slots are left when the list of tools is too old for another start: it cannot be read, and holds the server.
    config: { limits: { runs: 60 } },
    cause: ({ sim }) => {
      sim.faults.add({ kind: 'hang', op: 'any' });
    },
    // docs/runbooks/TrawlServerFailing.md: starts without an answer may have been paid for, and are told of for an hour.
    along: ['TrawlStartsUnanswered'],
    heal: ({ sim }) => sim.faults.clear(),
  },
  {
    name: 'server-slow',
    what: 'every call takes 16 to 20 s',
    expected: 'TrawlServerSlow',
    scope: 'server',
    cause: ({ sim }) => sim.set({ latencyMs: [16_000, 20_000] }),
    heal: ({ sim }) => sim.set({ latencyMs: [0, 0] }),
  },
  {
    name: 'rate-limited',
    what: 'the server answers 429 to nearly everything',
    expected: 'TrawlServerAtLimit',
    scope: 'server',
    cause: ({ sim }) => {
      sim.faults.add({ kind: 'http_429', op: 'any', probability: 0.7, retryAfter: 5 });
    },
    heal: ({ sim }) => sim.faults.clear(),
  },
  {
    name: 'at-capacity',
    what: "somebody else uses up the account's concurrent runs",
    expected: 'TrawlServerAtLimit',
    scope: 'server',
    // Cool-downs have grown to minutes by then.
    span: minutes(10),
    cause: ({ sim }) => sim.set({ maxRuns: 0 }),
    heal: ({ sim }) => sim.set({ maxRuns: null }),
  },
  {
    name: 'tool-not-rented',
    what: 'the rent of the Actor has run out',
    expected: 'TrawlToolHeld',
    scope: 'server',
    cause: ({ sim }) => sim.set({ refusals: { [yellowPages]: 'not_rented' } }),
    heal: ({ sim }) => sim.set({ refusals: {} }),
  },
  {
    name: 'runs-fail',
    what: 'every run ends FAILED: the brake holds the tool',
    expected: 'TrawlToolHeld',
    scope: 'server',
    cause: ({ sim }) => sim.set({ failingTools: [yellowPages] }),
    heal: ({ sim }) => sim.set({ failingTools: [] }),
  },
  {
    name: 'answers-lost',
    what: 'connections are reset after half of the starts took effect',
    expected: 'TrawlStartsUnanswered',
    scope: 'server',
    cause: ({ sim }) => {
      sim.faults.add({ kind: 'reset_after', op: 'start', probability: 0.5 });
    },
    heal: ({ sim }) => sim.faults.clear(),
  },
  {
    name: 'orphan-runs',
    what: 'the server makes two runs of some starts',
    expected: 'TrawlOrphanRuns',
    scope: 'server',
    config: { limits: { runs: 30 } },
    // Long enough that the second run does not end by itself before it is found.
    before: ({ traffic }) => traffic.steer({ runSecs: 15, items: 5 }),
    cause: ({ sim }) => {
      sim.faults.add({ kind: 'double_run', op: 'start', probability: 0.4 });
    },
    heal: ({ sim }) => sim.faults.clear(),
  },
  {
    name: seasoned,
    what: 'runs cost twenty times their usual price',
    expected: 'TrawlCostsRunAway',
    scope: 'server',
    before: ({ traffic }) => traffic.steer({ runSecs: 1, items: 10, usageUsd: 0.05 }),
    cause: ({ traffic }) => traffic.steer({ runSecs: 1, items: 10, usageUsd: 1 }),
    heal: ({ traffic }) => traffic.steer({ runSecs: 1, items: 10, usageUsd: 0.05 }),
  },
  {
    name: 'deadlines-missed',
    what: 'runs take longer than their deadline, and the next attempts too',
    expected: 'TrawlBurnFast',
    scope: 'server',
    cause: ({ traffic }) => traffic.steer({ runSecs: 300, items: 5 }, { deadline: '4s', retries: 1 }),
    heal: ({ traffic }) => traffic.asUsual(),
  },
  {
    name: 'stalled',
    what: 'runs go on without an end and hold every slot',
    expected: 'TrawlStalled',
    scope: 'server',
    cause: ({ traffic }) => traffic.steer({ runSecs: 86_400, items: 5 }, { deadline: '6h' }),
    heal: ({ sim, traffic }) => {
      traffic.asUsual();
      finishAll(sim, 5);
    },
  },
  {
    name: 'polls-late',
    what: 'a look at a run takes the server 10 s, with more runs under way than workers can look at in time',
    expected: 'TrawlPollsLate',
    scope: 'server',
    // A worker looks at twice as many runs at a time as requestsPerSecond.
    config: { limits: { runs: 130, requestsPerSecond: 4 } },
    // Runs that are known to be short and do not end would be a stall.
    everyMs: null,
    span: minutes(5),
    cause: async ({ sim, traffic }) => {
      sim.faults.add({ kind: 'slow', op: 'poll', ms: 10_000 });
      traffic.steer({ runSecs: 86_400, items: 3 }, { deadline: '6h' });
      await traffic.submit(120);
    },
    heal: ({ sim }) => {
      sim.faults.clear();
      finishAll(sim, 3);
    },
  },
  {
    name: 'jobs-invalid',
    what: 'a producer writes jobs that are none to the intake stream',
    expected: 'TrawlJobsInvalid',
    scope: 'source',
    everyMs: null,
    cause: ({ stack }) => {
      const timer = setInterval(() => {
        const add = stack.client.xadd('{rehearse}:intake', '*', 'job', '{"tool":"nobody/knows","inpt":{}}');
        add.catch(() => {});
      }, 250);
      nonsense.add(timer);
    },
    heal: () => {
      for (const timer of nonsense) clearInterval(timer);
      nonsense.clear();
    },
  },
  {
    name: 'paused',
    what: 'an operator paused the server, and scrapes wait',
    expected: null,
    scope: 'server',
    span: hours(1),
    cause: ({ stack, server }) => stack.trawl('pause', server),
    heal: ({ stack, server }) => stack.trawl('resume', server),
  },
];

const nonsense = new Set<NodeJS.Timeout>();
