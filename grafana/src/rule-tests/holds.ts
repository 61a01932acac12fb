import {
  between,
  born,
  type Case,
  calls,
  counter,
  fleet,
  from,
  gauge,
  held,
  name,
  night,
  type Phase,
  protocolErrors,
  runDuration,
  type SeriesSet,
  settled,
  silent,
  stopped,
  toolHeld,
} from './series.js';

/** Nothing ends any more and no call succeeds. */
const hung = {
  ...stopped,
  [calls('start', 'ok')]: between(10, 0),
  [calls('poll', 'ok')]: between(40, 0),
  [calls('read', 'ok')]: between(10, 0),
};

/** What ends as on a good night, in phases of 1 (things end) and 0. */
const settledBetween = (...phases: readonly Phase[]): SeriesSet => {
  const grows = (perMinute: number) =>
    counter(...phases.map(([minutes, share]) => [minutes, share * perMinute] as const));
  return {
    [settled('succeeded')]: grows(8.8),
    [settled('empty')]: grows(0.5),
    [settled('failed')]: grows(0.7),
  };
};

/** @param met what calls meet that the hold comes from */
const holdCase = (reason: string, alert: string, met: SeriesSet = {}): Case[] => [
  {
    title: `${alert}: the server is held for ${reason}, everything else of it is quiet`,
    series: { ...night, ...stopped, ...met, [held(reason)]: gauge([60, 0], [60, 1], [60, 0]) },
    checks: [
      { at: 58, firing: [] },
      { at: 66, firing: [alert] },
      { at: 110, firing: [alert] },
      { at: 126, firing: [] },
    ],
  },
  {
    title: `${alert}: a hold of some seconds`,
    series: {
      ...night,
      ...met,
      [held(reason)]: (step) => `0+0x${60 / step - 1} 1+0x0 0+0x${118 / step - 1}`,
    },
    checks: silent(62, 66, 120),
  },
];

/** Servers that are held, or give no answer worth having, or stand still. Each case is a server of its own. */
export function holdCases(): Case[] {
  return [
    {
      title:
        'TrawlTokenRevoked: calls that failed meanwhile are no incident of their own once the token works',
      series: {
        ...night,
        [held('auth')]: gauge([60, 0], [40, 1], [80, 0]),
        [calls('poll', 'ok')]: counter([60, 40], [40, 0], [80, 40]),
        [calls('poll', 'http_error')]: counter([60, 0], [40, 40], [80, 0]),
      },
      checks: [
        { at: 66, firing: ['TrawlTokenRevoked'] },
        { at: 98, firing: ['TrawlTokenRevoked'] },
        { at: 106, firing: [] },
        { at: 112, firing: [] },
        { at: 120, firing: [] },
      ],
    },
    {
      title: 'TrawlServerFailing: a server that hangs is told of before that nothing ends',
      series: {
        ...night,
        ...hung,
        [calls('poll', 'timeout')]: between(0, 2),
      },
      checks: [
        { at: 64, firing: [] },
        { at: 74, firing: ['TrawlServerFailing'] },
        { at: 90, firing: ['TrawlServerFailing'], muted: ['TrawlStalled'] },
        { at: 140, firing: [] },
      ],
    },
    ...holdCase('auth', 'TrawlTokenRevoked'),
    ...holdCase('payment', 'TrawlPaymentRequired'),
    ...holdCase('unreachable', 'TrawlServerUnreachable', {
      [calls('list_tools', 'network_error')]: between(0, 4),
    }),
    {
      title: 'TrawlServerUnreachable: once told of, also while the server comes back with HTTP errors',
      series: {
        ...night,
        ...hung,
        [calls('list_tools', 'network_error')]: counter([60, 0], [20, 4], [100, 0]),
        [calls('list_tools', 'http_error')]: counter([80, 0], [40, 4], [60, 0]),
        [held('unreachable')]: gauge([60, 0], [60, 1], [60, 0]),
      },
      checks: [
        { at: 66, firing: ['TrawlServerUnreachable'] },
        { at: 100, firing: ['TrawlServerUnreachable'] },
        { at: 126, firing: [] },
        { at: 134, firing: [] },
      ],
    },
    {
      title: 'TrawlServerFailing: the hold that follows when a server hangs is no second incident',
      series: {
        ...night,
        ...hung,
        [calls('poll', 'timeout')]: between(0, 2),
        [held('unreachable')]: gauge([76, 0], [46, 1], [58, 0]),
      },
      checks: [
        { at: 74, firing: ['TrawlServerFailing'] },
        { at: 84, firing: ['TrawlServerFailing'] },
        { at: 118, firing: ['TrawlServerFailing'] },
        { at: 126, firing: [] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlServerFailing: the same when the hold comes before',
      series: {
        ...night,
        ...hung,
        [calls('list_tools', 'timeout')]: between(0, 1),
        [held('unreachable')]: gauge([60, 0], [60, 1], [60, 0]),
      },
      checks: [
        { at: 64, firing: [] },
        { at: 70, firing: ['TrawlServerFailing'] },
        { at: 118, firing: ['TrawlServerFailing'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlServerFailing: the same when the server goes down in the end',
      series: {
        ...night,
        ...hung,
        [calls('poll', 'timeout')]: counter([60, 0], [30, 2], [90, 0]),
        [calls('poll', 'network_error')]: counter([90, 0], [30, 40], [60, 0]),
        [held('unreachable')]: gauge([90, 0], [30, 1], [60, 0]),
      },
      checks: [
        { at: 80, firing: ['TrawlServerFailing'], muted: ['TrawlStalled'] },
        { at: 100, firing: ['TrawlServerFailing'] },
        { at: 118, firing: ['TrawlServerFailing'] },
        { at: 144, firing: [] },
      ],
    },
    {
      title: 'TrawlServerFailing: a hung server gets few calls after a while, and is still one incident',
      series: {
        ...night,
        ...hung,
        [calls('poll', 'timeout')]: counter([60, 0], [10, 1], [50, 0.2], [60, 0]),
      },
      checks: [
        { at: 74, firing: ['TrawlServerFailing'] },
        { at: 90, firing: ['TrawlServerFailing'], muted: ['TrawlStalled'] },
        { at: 118, firing: ['TrawlServerFailing'], muted: ['TrawlStalled'] },
        { at: 140, firing: [] },
      ],
    },
    {
      title: 'TrawlProtocolErrors: a list of tools that is answered with -32603 holds the server',
      series: {
        ...night,
        ...hung,
        [calls('list_tools', 'protocol_error')]: between(0, 4),
        [protocolErrors('list_tools', '-32603')]: born(60, 4, 60, 4),
        [held('unreachable')]: gauge([60, 0], [60, 1], [60, 0]),
      },
      checks: [
        { at: 64, firing: [] },
        { at: 70, firing: ['TrawlProtocolErrors'] },
        { at: 118, firing: ['TrawlProtocolErrors'] },
        { at: 140, firing: [] },
      ],
    },
    ...holdCase('tools_missing', 'TrawlToolsMissing'),
    {
      title: 'TrawlToolsMissing: one tool is not shown any more',
      series: { ...night, [toolHeld('tools_missing')]: gauge([60, 0], [60, 1], [60, 0]) },
      checks: [
        { at: 66, firing: ['TrawlToolsMissing'] },
        { at: 126, firing: [] },
      ],
    },
    {
      title: 'TrawlStalled: a backlog, free slots, no hold, and nothing moves',
      series: {
        ...night,
        ...stopped,
        [calls('start', 'ok')]: counter([60, 10], [60, 0], [60, 10]),
        [calls('poll', 'ok')]: counter([60, 40], [60, 0], [60, 40]),
        [name('trawl_runs_in_flight', 'server="apify"')]: gauge([60, 20], [60, 0], [60, 20]),
      },
      checks: [
        { at: 72, firing: [] },
        { at: 86, firing: ['TrawlStalled'] },
        { at: 126, firing: [] },
      ],
    },
    {
      title: 'TrawlStalled: the server is paused',
      series: { ...night, ...stopped, [held('paused')]: gauge([60, 0], [60, 1], [60, 0]) },
      checks: silent(86, 116),
    },
    {
      title: 'TrawlStalled: runs that take half an hour are polled, and nothing can settle before they end',
      series: {
        ...night,
        ...stopped,
        [runDuration('300')]: counter([180, 0]),
        [runDuration('600')]: counter([180, 0]),
      },
      checks: [
        { at: 80, firing: [] },
        { at: 100, firing: [] },
      ],
    },
    {
      title: 'TrawlStalled: the first runs of a batch after an idle hour are still under way',
      series: {
        ...fleet([20, 1], [80, 0], [80, 1]),
        ...settledBetween([20, 1], [88, 0], [72, 1]),
      },
      checks: silent(104, 106, 108, 110, 120),
    },
    {
      title: 'TrawlStalled: the first runs of a new server take half an hour',
      series: from(100, {
        ...fleet([80, 1]),
        ...settledBetween([40, 0], [40, 1]),
        [runDuration('300')]: counter([80, 0]),
        [runDuration('600')]: counter([80, 0]),
        [runDuration('+Inf')]: counter([80, 0]),
      }),
      checks: silent(104, 106, 112, 118, 130),
    },
    {
      title: 'TrawlStalled: resumed after two hours, and runs take twenty minutes',
      series: {
        ...night,
        ...settledBetween([20, 1], [150, 0], [10, 1]),
        [held('paused')]: gauge([20, 0], [130, 1], [30, 0]),
        [runDuration('300')]: counter([180, 0]),
        [runDuration('600')]: counter([180, 0]),
      },
      checks: silent(100, 150, 156, 160, 168, 178),
    },
    {
      title: 'TrawlStalled: nothing to do',
      series: fleet([180, 0]),
      checks: silent(20, 60, 170),
    },
  ];
}
