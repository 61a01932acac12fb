import {
  born,
  type Case,
  calls,
  counter,
  fleet,
  gauge,
  held,
  jobs,
  lateness,
  latenessCount,
  protocolErrors,
  settled,
  submitted,
  took,
  tookCount,
  tool,
  toolHeld,
  usage,
} from './series.js';

const night = fleet([180, 1]);
/** Bad from minute 60 to 120. */
const between = (good: number, bad: number) => counter([60, good], [60, bad], [60, good]);
const silent = (...at: number[]) => at.map((each) => ({ at: each, firing: [] }));
/** What a fleet without load shows when a server is held: it waits and starts nothing. */
const stopped = { [settled('succeeded')]: between(8.8, 0), [settled('empty')]: between(0.5, 0), [settled('failed')]: between(0.7, 0) };
const little = (...phases: readonly (readonly [number, number])[]) => ({
  ...fleet([360, 0.02]),
  [settled('succeeded')]: counter([360, 0]),
  [settled('failed')]: counter([360, 0]),
  [settled('empty')]: counter(...phases),
});

const holdCase = (reason: string, alert: string): Case[] => [
  {
    title: `${alert}: the server is held for ${reason}, everything else of it is quiet`,
    series: { ...night, ...stopped, [held(reason)]: gauge([60, 0], [60, 1], [60, 0]) },
    checks: [
      { at: 59, firing: [] },
      { at: 65, firing: [alert] },
      { at: 110, firing: [alert] },
      { at: 125, firing: [] },
    ],
  },
  {
    title: `${alert}: a hold of some seconds`,
    series: { ...night, [held(reason)]: (step) => `0+0x${60 / step} _x1 0+0x${118 / step}` },
    checks: silent(62, 65, 120),
  },
];

/** What goes wrong at a server, and what only looks like it. */
export function serverCases(): Case[] {
  return [
    {
      title: 'TrawlRunsEmpty: every run turns empty, and recovers',
      series: { ...night, [settled('succeeded')]: between(8.8, 0), [settled('empty')]: between(0.5, 9.3) },
      checks: [
        { at: 59, firing: [] },
        { at: 75, firing: ['TrawlRunsEmpty'] },
        { at: 100, firing: ['TrawlRunsEmpty'] },
        { at: 122, firing: [], muted: ['TrawlRunsEmpty', 'TrawlBurnFast'] },
        { at: 145, firing: [] },
      ],
      page: {
        at: 90,
        alert: 'TrawlRunsEmpty',
        labels: { severity: 'critical', layer: 'cause', server: 'apify', tool },
        annotations: {
          summary: `${tool} on apify: runs succeed with nothing in them`,
          description:
            `Users of ${tool} get no items though its runs succeed; 294 scrapes ended empty in the last hour, since 1970-01-01 01:06:00 +0000 UTC. Type: trawl pause apify/${tool}\n` +
            '100% of its runs were empty, against its usual ratio (above it 3 times and by 20 %), or 10 in a row.',
          runbook_url: 'http://localhost:3000/public/runbooks/TrawlRunsEmpty.md',
          dashboard_url: `http://localhost:3000/d/trawl-server?var-server=apify&var-tool=${tool}`,
        },
      },
    },
    {
      title: 'TrawlRunsEmpty: three of four runs turn empty',
      series: { ...night, [settled('succeeded')]: between(8.8, 2), [settled('empty')]: between(0.5, 7.3) },
      checks: [
        { at: 59, firing: [] },
        { at: 119, firing: ['TrawlRunsEmpty'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlRunsEmpty: the brake stops the tool after twenty, and its probes stay empty',
      series: {
        ...night,
        [submitted]: between(10, 0.2),
        [settled('succeeded')]: between(8.8, 0),
        [settled('failed')]: between(0.7, 0),
        [settled('empty')]: counter([60, 0.5], [2, 8], [58, 0.2], [60, 0.5]),
        [toolHeld('brake')]: gauge([62, 0], [58, 1], [60, 0]),
      },
      checks: [
        { at: 72, firing: ['TrawlRunsEmpty'], muted: ['TrawlToolHeld'] },
        { at: 90, firing: ['TrawlRunsEmpty'], muted: ['TrawlToolHeld'] },
        { at: 118, firing: ['TrawlRunsEmpty'], muted: ['TrawlToolHeld', 'TrawlBurnFast'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlRunsEmpty: twelve in a row over some hours, on a server with little traffic',
      series: little([60, 0], [300, 0.04]),
      checks: [
        { at: 250, firing: [] },
        { at: 355, firing: ['TrawlRunsEmpty'], muted: ['TrawlBurnFast'] },
      ],
    },
    {
      title: 'TrawlRunsEmpty: a few empty runs at night',
      series: little([60, 0], [120, 0.04], [180, 0]),
      checks: silent(120, 200, 350),
    },
    {
      title: 'TrawlSchemaChanged: starts get -32602, scrapes are rejected, the brake holds the tool',
      series: {
        ...night,
        ...stopped,
        [submitted]: between(10, 0.2),
        [settled('rejected')]: counter([60, 0], [2, 10], [58, 0.2], [60, 0]),
        [calls('start', 'ok')]: between(10, 0),
        [calls('start', 'protocol_error')]: counter([60, 0], [2, 10], [58, 0.2], [60, 0]),
        [protocolErrors('start', '-32602')]: born(61, 20, 119, 0.1),
        [toolHeld('brake')]: gauge([62, 0], [58, 1], [60, 0]),
      },
      checks: [
        { at: 59, firing: [] },
        { at: 75, firing: ['TrawlSchemaChanged'], muted: ['TrawlToolHeld'] },
        { at: 110, firing: ['TrawlSchemaChanged'], muted: ['TrawlToolHeld'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlSchemaChanged: two inputs that do not fit',
      series: {
        ...night,
        [settled('rejected')]: counter([60, 0], [2, 1], [118, 0]),
        [protocolErrors('start', '-32602')]: born(61, 2, 119),
      },
      checks: silent(64, 70, 120),
    },
    {
      title: 'TrawlInputsRejected: our own check refuses most inputs, and no server said -32602',
      series: { ...night, ...stopped, [settled('rejected')]: between(0, 10) },
      checks: [
        { at: 59, firing: [] },
        { at: 119, firing: ['TrawlInputsRejected'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlInputsRejected: four of them',
      series: { ...fleet([180, 0]), [settled('rejected')]: counter([60, 0], [4, 1], [116, 0]) },
      checks: silent(70, 90, 120),
    },
    ...holdCase('auth', 'TrawlTokenRevoked'),
    ...holdCase('payment', 'TrawlPaymentRequired'),
    ...holdCase('unreachable', 'TrawlServerUnreachable'),
    ...holdCase('tools_missing', 'TrawlToolsMissing'),
    {
      title: 'TrawlToolsMissing: one tool is not shown any more',
      series: { ...night, [toolHeld('tools_missing')]: gauge([60, 0], [60, 1], [60, 0]) },
      checks: [
        { at: 65, firing: ['TrawlToolsMissing'] },
        { at: 125, firing: [] },
      ],
    },
    {
      title: 'TrawlServerAtLimit: cools down most of the time',
      series: {
        ...night,
        [held('capacity')]: gauge([60, 0], [60, 1], [60, 0]),
        [calls('start', 'capacity')]: born(60, 1, 60, 1),
      },
      checks: [
        { at: 65, firing: [] },
        { at: 90, firing: ['TrawlServerAtLimit'] },
        { at: 150, firing: [] },
      ],
    },
    {
      title: 'TrawlServerAtLimit: a few refusals, and short cool-downs',
      series: {
        ...night,
        [held('rate_limit')]: gauge([60, 0], [6, 1], [114, 0]),
        [calls('start', 'rate_limited')]: born(60, 1, 60, 0.05),
      },
      checks: silent(66, 75, 100),
    },
    {
      title: 'TrawlToolHeld: runs fail one after another, and the brake holds the tool',
      series: {
        ...night,
        [settled('succeeded')]: between(8.8, 4),
        [settled('failed')]: counter([60, 0.7], [3, 8], [57, 0.2], [60, 0.7]),
        [toolHeld('brake')]: gauge([63, 0], [57, 1], [60, 0]),
      },
      checks: [
        { at: 65, firing: [] },
        { at: 80, firing: ['TrawlToolHeld'] },
        { at: 130, firing: [] },
      ],
    },
    {
      title: 'TrawlServerFailing: the server hangs, calls time out',
      series: {
        ...night,
        ...stopped,
        [calls('start', 'ok')]: between(10, 0),
        [calls('poll', 'ok')]: between(40, 10),
        [calls('read', 'ok')]: between(10, 0),
        [calls('poll', 'timeout')]: born(61, 20, 59, 20),
      },
      checks: [
        { at: 59, firing: [] },
        { at: 100, firing: ['TrawlServerFailing'] },
        { at: 145, firing: [] },
      ],
    },
    {
      title: 'TrawlServerFailing: little traffic, five HTTP errors and not one answer',
      series: {
        ...fleet([180, 0]),
        [calls('poll', 'http_error')]: (step) => counter([70, 0], [5, 1], [105, 0])(step),
      },
      checks: [
        { at: 60, firing: [] },
        { at: 82, firing: ['TrawlServerFailing'] },
        { at: 150, firing: [] },
      ],
    },
    {
      title: 'TrawlServerFailing: two timeouts at night',
      series: { ...fleet([180, 0]), [calls('poll', 'timeout')]: born(61, 2, 119) },
      checks: silent(65, 75, 120),
    },
    {
      title: 'TrawlProtocolErrors: a third of the polls get -32603',
      series: {
        ...night,
        [calls('poll', 'protocol_error')]: between(0, 30),
        [calls('poll', 'ok')]: between(40, 10),
        [protocolErrors('poll', '-32603')]: born(61, 30, 59, 30),
      },
      checks: [
        { at: 59, firing: [] },
        { at: 100, firing: ['TrawlProtocolErrors'] },
        { at: 145, firing: [] },
      ],
    },
    {
      title: 'TrawlProtocolErrors: two of them',
      series: { ...fleet([180, 0]), [protocolErrors('poll', '-32603')]: born(61, 2, 119) },
      checks: silent(65, 75, 120),
    },
    {
      title: 'TrawlServerSlow: half of the calls take longer than 15 s',
      series: { ...night, [took('15')]: between(10, 5) },
      checks: [
        { at: 59, firing: [] },
        { at: 115, firing: ['TrawlServerSlow'] },
        { at: 145, firing: [] },
      ],
    },
    {
      title: 'TrawlServerSlow: five slow calls',
      series: { ...fleet([180, 0]), [took('+Inf')]: counter([60, 0], [5, 1], [115, 0]), [tookCount]: counter([60, 0], [5, 1], [115, 0]) },
      checks: silent(70, 100),
    },
    {
      title: 'TrawlStartsUnanswered: scrapes end start_unknown',
      series: { ...night, [settled('start_unknown')]: counter([60, 0], [30, 0.2], [90, 0]) },
      checks: [
        { at: 59, firing: [] },
        { at: 95, firing: ['TrawlStartsUnanswered'] },
        { at: 165, firing: [] },
      ],
    },
    {
      title: 'TrawlStartsUnanswered: one of them',
      series: { ...night, [settled('start_unknown')]: counter([60, 0], [1, 1], [119, 0]) },
      checks: silent(70, 100),
    },
    {
      title: 'TrawlStartsUnanswered: a fifth of the starts is lost and found again',
      series: {
        ...night,
        'trawl_ambiguous_starts_total{server="apify",resolution="adopted",instance="w1",job="trawl"}': born(60, 2, 120, 2),
      },
      checks: [
        { at: 59, firing: [] },
        { at: 110, firing: ['TrawlStartsUnanswered'] },
      ],
    },
    {
      title: 'TrawlOrphanRuns: five runs without an owner are ended',
      series: {
        ...night,
        'trawl_orphan_runs_total{server="apify",action="aborted",instance="w1",job="trawl"}': born(60, 5, 120),
      },
      checks: [
        { at: 59, firing: [] },
        { at: 64, firing: ['TrawlOrphanRuns'] },
        { at: 130, firing: [] },
      ],
    },
    {
      title: 'TrawlOrphanRuns: one of them',
      series: {
        ...night,
        'trawl_orphan_runs_total{server="apify",action="aborted",instance="w1",job="trawl"}': born(60, 1, 120),
      },
      checks: silent(64, 100),
    },
    {
      title: 'TrawlPollsLate: a third of the polls is late',
      series: { ...night, [lateness('30')]: between(40, 25) },
      checks: [
        { at: 59, firing: [] },
        { at: 105, firing: ['TrawlPollsLate'] },
        { at: 145, firing: [] },
      ],
    },
    {
      title: 'TrawlPollsLate: five late polls',
      series: {
        ...fleet([180, 0]),
        [lateness('+Inf')]: counter([60, 0], [5, 1], [115, 0]),
        [latenessCount]: counter([60, 0], [5, 1], [115, 0]),
      },
      checks: silent(70, 100),
    },
    {
      title: 'TrawlCostsRunAway: runs become ten times dearer than they were for eight hours',
      series: {
        ...fleet([660, 1]),
        [usage]: counter([480, 0.1], [90, 1], [90, 0.1]),
      },
      checks: [
        { at: 470, firing: [] },
        { at: 540, firing: ['TrawlCostsRunAway'] },
        { at: 600, firing: [] },
      ],
    },
    {
      title: 'TrawlCostsRunAway: dearer, and still cheap',
      series: { ...fleet([660, 1]), [usage]: counter([480, 0.001], [180, 0.05]) },
      checks: silent(470, 540, 600),
    },
    {
      title: 'a tool that is rightly empty in a third of its runs, a bit more of it tonight',
      series: {
        ...fleet([660, 1]),
        [settled('succeeded')]: counter([480, 6.2], [180, 4.2]),
        [settled('empty')]: counter([480, 3.1], [180, 5.1]),
        [jobs('start-apify', 'delayed')]: gauge([660, 3]),
      },
      // Its objective is another matter: a third of its scrapes does not end as asked.
      checks: [
        { at: 470, firing: [], muted: ['TrawlBurnSlow'] },
        { at: 600, firing: [], muted: ['TrawlBurnSlow'] },
      ],
    },
  ];
}
