import { type Case, counter, fleet, gauge, held, jobs, settled, submitted, toolHeld } from './series.js';

const hour = 60;
const day = 24 * hour;
const nightly = (...batches: readonly number[]) =>
  batches.flatMap((share) => [
    [4 * hour, share],
    [20 * hour, 0],
  ] as const);

/** Cases over days. */
export function longCases(): Case[] {
  return [
    {
      title: 'TrawlTrafficStopped: three nights with a batch, and a fourth without',
      series: fleet(...nightly(1, 1, 1, 0)),
      checks: [
        { at: 3 * day - hour, firing: [] },
        { at: 3 * day + 2 * hour, firing: [] },
        { at: 3 * day + 9 * hour, firing: ['TrawlTrafficStopped'] },
      ],
    },
    {
      title: 'TrawlTrafficStopped: the batch comes back',
      series: { ...fleet([5 * day, 0]), [submitted]: counter(...nightly(1, 1, 1, 0, 1)) },
      checks: [
        { at: 3 * day + 20 * hour, firing: ['TrawlTrafficStopped'] },
        { at: 4 * day + 2 * hour, firing: [] },
      ],
    },
    {
      title: 'TrawlTrafficStopped: a fleet that has never had work',
      series: fleet([4 * day, 0]),
      checks: [{ at: 3 * day, firing: [] }],
    },
    {
      title: 'TrawlPausedLong: paused for more than a day, then resumed',
      series: {
        ...fleet([48 * hour, 0]),
        [held('paused')]: gauge([6 * hour, 0], [30 * hour, 1], [12 * hour, 0]),
        [jobs('start-apify', 'prioritized')]: gauge([48 * hour, 40]),
      },
      checks: [
        { at: 20 * hour, firing: [] },
        { at: 31 * hour, firing: ['TrawlPausedLong'] },
        { at: 36 * hour + 10, firing: [] },
      ],
    },
    {
      title: 'TrawlPausedLong: one tool',
      series: { ...fleet([48 * hour, 0]), [toolHeld('paused')]: gauge([6 * hour, 0], [42 * hour, 1]) },
      checks: [
        { at: 20 * hour, firing: [] },
        { at: 31 * hour, firing: ['TrawlPausedLong'] },
      ],
    },
    {
      title: 'TrawlBurnSlow: a third fails for most of a day',
      series: {
        ...fleet([72 * hour, 1]),
        [settled('succeeded')]: counter([40 * hour, 8.8], [20 * hour, 5], [12 * hour, 8.8]),
        [settled('failed')]: counter([40 * hour, 0.7], [20 * hour, 4.5], [12 * hour, 0.7]),
      },
      checks: [
        { at: 39 * hour, firing: [] },
        { at: 59 * hour, firing: ['TrawlBurnSlow'] },
        { at: 71 * hour, firing: [] },
      ],
    },
    {
      title: 'TrawlBurnSlow: a few failures a day',
      series: { ...fleet([72 * hour, 0]), [settled('failed')]: counter([72 * hour, 0.005]) },
      checks: [{ at: 50 * hour, firing: [] }],
    },
    {
      title: 'TrawlCostsRunAway: more than the daily amount, at the usual price',
      series: {
        ...fleet([48 * hour, 0]),
        'trawl_usage_usd_total{server="apify",tool="compass/crawler-google-places",instance="w1",job="trawl"}': counter(
          [24 * hour, 0.02],
          [6 * hour, 0.4],
          [18 * hour, 0],
        ),
      },
      checks: [
        { at: 23 * hour, firing: [] },
        { at: 30 * hour, firing: ['TrawlCostsRunAway'] },
      ],
    },
    {
      title: 'an idle morning after a night of 50,000 scrapes',
      series: fleet([4 * hour, 0], [5 * hour, 16], [15 * hour, 0]),
      checks: [8, 9.2, 10, 12, 16, 23].map((at) => ({ at: at * hour, firing: [] })),
    },
  ];
}
