import { type Case, counter, fleet, gauge, jobs, settled, silent, usage } from './series.js';

const hour = 60;
const little = (...phases: readonly (readonly [number, number])[]) => ({
  ...fleet([360, 0]),
  [settled('succeeded')]: counter([360, 0]),
  [settled('failed')]: counter([360, 0]),
  [settled('empty')]: counter(...phases),
});

/** Cases over hours. Each is a server of its own. */
export function hourCases(): Case[] {
  return [
    {
      title: 'a normal day: a batch in the night, an idle morning, a small batch at noon',
      series: fleet([60, 0], [360, 1], [300, 0], [60, 1], [120, 0]),
      checks: silent(30, 65, 75, 90, 240, 420, 425, 440, 500, 700, 725, 780, 800, 890),
    },
    {
      title: 'an idle morning after a night of 50,000 scrapes',
      series: fleet([4 * hour, 0], [5 * hour, 16], [15 * hour, 0]),
      checks: silent(...[8, 9.25, 10, 12, 16, 23].map((at) => at * hour)),
    },
    {
      title: 'TrawlBurnSlow: two thirds fail for eight hours',
      series: {
        ...fleet([26 * hour, 1]),
        [settled('succeeded')]: counter([14 * hour, 1.8], [8 * hour, 2.5], [4 * hour, 8.8]),
        [settled('empty')]: counter([14 * hour, 0.1], [8 * hour, 0.5], [4 * hour, 0.5]),
        [settled('failed')]: counter([14 * hour, 0.1], [8 * hour, 7], [4 * hour, 0.7]),
      },
      checks: [
        { at: 13 * hour, firing: [] },
        { at: 22 * hour - 5, firing: ['TrawlBurnSlow'] },
        { at: 26 * hour - 5, firing: [] },
      ],
    },
    {
      title: 'TrawlBurnSlow: some failures, and nothing else, in a day',
      series: { ...fleet([26 * hour, 0]), [settled('failed')]: counter([26 * hour, 0.02]) },
      checks: silent(20 * hour, 25 * hour),
    },
    {
      title: 'TrawlCostsRunAway: more than the daily amount, at the usual price',
      series: {
        ...fleet([26 * hour, 0]),
        [usage]: counter([10 * hour, 0.02], [6 * hour, 0.4], [10 * hour, 0]),
      },
      checks: [
        { at: 9 * hour, firing: [] },
        { at: 16 * hour, firing: ['TrawlCostsRunAway'] },
      ],
    },
    {
      title: 'TrawlCostsRunAway: runs become ten times dearer than they were for eighteen hours',
      series: {
        ...fleet([1260, 1]),
        [usage]: counter([1080, 0.01], [90, 0.1], [90, 0.01]),
      },
      checks: [
        { at: 1070, firing: [] },
        { at: 1140, firing: ['TrawlCostsRunAway'] },
        { at: 1200, firing: [] },
      ],
    },
    {
      title: 'TrawlCostsRunAway: dearer, and still cheap',
      series: { ...fleet([1260, 1]), [usage]: counter([1080, 0.001], [180, 0.05]) },
      checks: silent(1070, 1140, 1200),
    },
    {
      title: 'a tool that is rightly empty in a third of its runs, a bit more of it tonight',
      series: {
        ...fleet([1260, 1]),
        [settled('succeeded')]: counter([1080, 6.2], [180, 2.8]),
        [settled('empty')]: counter([1080, 3.1], [180, 6.5]),
        [jobs('start-apify', 'delayed')]: gauge([1260, 3]),
      },
      // Its objective is another matter: a third of its scrapes does not end as asked.
      checks: [
        { at: 1070, firing: [], muted: ['TrawlBurnSlow'] },
        { at: 1200, firing: [], muted: ['TrawlBurnSlow'] },
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
  ];
}
