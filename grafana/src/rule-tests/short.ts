import { fleetCases } from './short-fleet.js';
import { serverCases } from './short-server.js';
import { type Case, fleet, gauge, name, until, up } from './series.js';

/** Cases that are looked at every minute. */
export function shortCases(): Case[] {
  return [
    {
      title: 'a normal day: a batch in the night, an idle morning, a small batch at noon',
      series: fleet([60, 0], [360, 1], [300, 0], [60, 1], [120, 0]),
      checks: [30, 62, 75, 90, 240, 419, 425, 440, 500, 700, 722, 779, 800, 890].map((at) => ({ at, firing: [] })),
    },
    {
      title: 'a night without a single series',
      series: { [name('up', 'x="1"').replace('job="trawl"', 'job="other"')]: gauge([120, 1]) },
      checks: [{ at: 60, firing: [] }, { at: 119, firing: [] }],
    },
    {
      title: 'an idle fleet that is scaled to nothing: only its metrics are missed, and not for ever',
      series: { ...until(90, fleet([30, 1], [60, 0])), [up]: gauge([90, 1], [150, 0]) },
      checks: [
        { at: 89, firing: [] },
        { at: 100, firing: ['TrawlSeriesGone'] },
        { at: 160, firing: [] },
      ],
    },
    ...serverCases(),
    ...fleetCases(),
  ];
}
