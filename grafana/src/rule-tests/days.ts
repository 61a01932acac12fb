import { type Case, counter, fleet, gauge, held, submitted, toolHeld } from './series.js';

const hour = 60;
const day = 24 * hour;
const nightly = (...batches: readonly number[]) =>
  batches.flatMap((share) => [[4 * hour, share] as const, [20 * hour, 0] as const]);
const silentFleet = fleet([5 * day, 0]);

/** Cases over days, looked at every half hour. Each is a server of its own. */
export function dayCases(): Case[] {
  return [
    {
      title: 'TrawlTrafficStopped: three nights with a batch, a fourth without, and it comes back',
      series: { ...silentFleet, [submitted]: counter(...nightly(1, 1, 1, 0, 1)) },
      checks: [
        { at: 3 * day - hour, firing: [] },
        { at: 3 * day + 2 * hour, firing: [] },
        { at: 3 * day + 9 * hour, firing: ['TrawlTrafficStopped'] },
        { at: 4 * day + 2 * hour, firing: [] },
      ],
    },
    {
      title: 'TrawlTrafficStopped: a fleet that has never had work',
      series: silentFleet,
      checks: [{ at: 3 * day, firing: [] }],
    },
    {
      title: 'TrawlPausedLong: paused for more than a day, then resumed',
      series: { ...silentFleet, [held('paused')]: gauge([6 * hour, 0], [30 * hour, 1], [84 * hour, 0]) },
      checks: [
        { at: 20 * hour, firing: [] },
        { at: 31 * hour, firing: ['TrawlPausedLong'] },
        { at: 37 * hour, firing: [] },
      ],
    },
    {
      title: 'TrawlPausedLong: one tool',
      series: { ...silentFleet, [toolHeld('paused')]: gauge([6 * hour, 0], [114 * hour, 1]) },
      checks: [
        { at: 20 * hour, firing: [] },
        { at: 31 * hour, firing: ['TrawlPausedLong'] },
      ],
    },
  ];
}
