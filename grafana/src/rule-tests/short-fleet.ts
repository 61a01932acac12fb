import {
  born,
  type Case,
  calls,
  clock,
  counter,
  fetched,
  fleet,
  gauge,
  held,
  jobs,
  name,
  runDuration,
  settled,
  submitted,
  until,
  up,
} from './series.js';

const night = fleet([180, 1]);
const idle = fleet([180, 0]);
const silent = (...at: number[]) => at.map((each) => ({ at: each, firing: [] }));
const used = name('trawl_redis_memory_used_bytes');
const most = name('trawl_redis_memory_max_bytes');
const evicted = name('trawl_redis_evicted_keys_total');
const sinkErrors = name('trawl_sink_errors_total', 'sink="file"');
const sinkHeld = name('trawl_sink_held', 'sink="file"');
const invalid = (source: string) => name('trawl_jobs_invalid_total', `source="${source}"`);
const settledNothing = {
  [settled('succeeded')]: counter([60, 8.8], [60, 0], [60, 8.8]),
  [settled('empty')]: counter([60, 0.5], [60, 0], [60, 0.5]),
  [settled('failed')]: counter([60, 0.7], [60, 0], [60, 0.7]),
};
const startsNothing = { [submitted]: counter([60, 10], [60, 0], [60, 10]) };
const oldest = name('trawl_queue_oldest_age_seconds', 'queue="scrape"');

/** What goes wrong under all servers, and what only looks like it. */
export function fleetCases(): Case[] {
  return [
    {
      title: 'TrawlWorkersDown: all workers are killed with a backlog',
      series: { ...until(60, night), [up]: gauge([60, 1], [60, 0]) },
      checks: [
        { at: 59, firing: [] },
        { at: 63, firing: ['TrawlWorkersDown'], muted: ['TrawlSeriesGone'] },
        { at: 119, firing: ['TrawlWorkersDown'], muted: ['TrawlSeriesGone'] },
      ],
      page: {
        at: 70,
        alert: 'TrawlWorkersDown',
        labels: { severity: 'critical', layer: 'platform' },
        annotations: {
          summary: 'No worker answers, and scrapes wait',
          description:
            'No scrape is worked on: not one worker answers; 60 scrapes are open, since 1970-01-01 01:00:00 +0000 UTC. Type: trawl work\n' +
            '60 scrapes were open when a worker was last seen. Runs under way go on at the servers and cost money.',
          runbook_url: 'http://localhost:3000/public/runbooks/TrawlWorkersDown.md',
          dashboard_url: 'http://localhost:3000/d/trawl-process',
        },
      },
    },
    {
      title: 'TrawlWorkersDown: they come back after half an hour',
      series: { ...night, [up]: gauge([60, 1], [30, 0], [90, 1]) },
      checks: [
        { at: 65, firing: ['TrawlWorkersDown'] },
        { at: 92, firing: [] },
      ],
    },
    {
      title: 'TrawlWorkersDown: a restart of a minute',
      series: { ...night, [up]: gauge([60, 1], [1, 0], [119, 1]) },
      checks: silent(60, 61, 62, 70),
    },
    {
      title: 'TrawlWorkerStuck: one worker takes nothing from one queue any more',
      series: { ...night, [fetched('start-apify')]: clock(180, 60) },
      checks: [
        { at: 69, firing: [] },
        { at: 80, firing: ['TrawlWorkerStuck'] },
      ],
    },
    {
      title: 'TrawlWorkerStuck: two calls of five minutes each, and it goes on',
      series: { ...night, [fetched('start-apify')]: (step) => `${clock(60)(step)} 3540+0x8 ${60 * 69}+60x110` },
      checks: silent(65, 69, 75),
    },
    {
      title: 'TrawlRedisUnreachable: no queue of any worker is fetched from',
      series: { ...night, ...settledNothing, [fetched('scrape')]: clock(180, 60), [fetched('start-apify')]: clock(180, 60) },
      checks: [
        { at: 59, firing: [] },
        { at: 63, firing: ['TrawlRedisUnreachable'] },
        // Polls are still counted as made in these series, and 7 min of runs, so that nothing else fires.
        { at: 74, firing: ['TrawlRedisUnreachable'] },
      ],
    },
    {
      title: 'TrawlRedisUnreachable: Redis answers again',
      series: {
        ...night,
        [fetched('scrape')]: (step) => `${clock(60)(step)} 3540+0x9 4200+60x109`,
        [fetched('start-apify')]: (step) => `${clock(60)(step)} 3540+0x9 4200+60x109`,
      },
      checks: [
        { at: 66, firing: ['TrawlRedisUnreachable'] },
        { at: 72, firing: [] },
      ],
    },
    {
      title: 'TrawlRedisNearlyFull: the backlog fills Redis, and is worked off',
      series: { ...night, [used]: gauge([60, 2e8], [60, 9.8e8], [60, 3e8]) },
      checks: [
        { at: 59, firing: [] },
        { at: 64, firing: ['TrawlRedisNearlyFull'] },
        { at: 125, firing: [] },
      ],
    },
    {
      title: 'TrawlRedisNearlyFull: without maxmemory there is no ratio',
      series: { ...night, [used]: gauge([180, 9.8e9]), [most]: gauge([180, 0]) },
      checks: silent(64, 150),
    },
    {
      title: 'TrawlRedisEvicts: keys are thrown away',
      series: { ...night, [evicted]: counter([60, 0], [5, 7], [115, 0]) },
      checks: [
        { at: 59, firing: [] },
        { at: 64, firing: ['TrawlRedisEvicts'] },
        { at: 90, firing: [] },
      ],
    },
    {
      title: 'TrawlRedisEvicts: another process is elected, and says what was evicted long ago',
      series: {
        ...night,
        [evicted]: gauge([180, 12]),
        'trawl_redis_evicted_keys_total{instance="w2",job="trawl"}': gauge([60, 0], [120, 12]),
      },
      checks: silent(59, 62, 66, 100),
    },
    {
      title: 'TrawlSinkRefuses: the disk is full, nothing settles',
      series: {
        ...night,
        ...settledNothing,
        [sinkErrors]: (step) => `_x60 4+30x59 1774+0x59`.replaceAll('_', step === 1 ? '_' : '_'),
        [sinkHeld]: gauge([60, 0], [60, 1], [60, 0]),
      },
      checks: [
        { at: 59, firing: [] },
        { at: 64, firing: ['TrawlSinkRefuses'] },
        { at: 110, firing: ['TrawlSinkRefuses'] },
        { at: 130, firing: [] },
      ],
    },
    {
      title: 'TrawlSinkRefuses: one refused write',
      series: { ...night, [sinkErrors]: born(60, 1, 120), [sinkHeld]: gauge([60, 0], [1, 1], [119, 0]) },
      checks: silent(61, 64, 100),
    },
    {
      title: 'TrawlSinkRefuses: held by a process that has written nothing since, while others write',
      series: { ...night, [sinkErrors]: born(60, 2, 120), [sinkHeld]: gauge([60, 0], [120, 1]) },
      checks: silent(64, 100),
    },
    {
      title: 'TrawlStalled: a backlog, free slots, no hold, and nothing moves',
      series: {
        ...night,
        ...settledNothing,
        [calls('start', 'ok')]: counter([60, 10], [60, 0], [60, 10]),
        [calls('poll', 'ok')]: counter([60, 40], [60, 0], [60, 40]),
        [name('trawl_runs_in_flight', 'server="apify"')]: gauge([60, 20], [60, 0], [60, 20]),
      },
      checks: [
        { at: 72, firing: [] },
        { at: 85, firing: ['TrawlStalled'] },
        { at: 125, firing: [] },
      ],
    },
    {
      title: 'TrawlStalled: the server is paused',
      series: { ...night, ...settledNothing, [held('paused')]: gauge([60, 0], [60, 1], [60, 0]) },
      checks: silent(85, 115),
    },
    {
      title: 'TrawlStalled: runs that take half an hour are polled, and nothing can settle before they end',
      series: {
        ...night,
        ...settledNothing,
        [runDuration('300')]: counter([180, 0]),
        [runDuration('600')]: counter([180, 0]),
      },
      checks: [
        { at: 80, firing: [] },
        { at: 100, firing: [] },
      ],
    },
    {
      title: 'TrawlStalled: nothing to do',
      series: idle,
      checks: silent(20, 60, 170),
    },
    {
      title: 'TrawlBacklogNotAccepted: submitted scrapes lie in the public queue',
      series: {
        ...idle,
        [jobs('scrape', 'waiting')]: gauge([60, 0], [60, 500], [60, 0]),
        [oldest]: (step) => `0+0x59 0+60x59 0+0x59`.replace('60x', `${60 * step}x`),
      },
      checks: [
        { at: 70, firing: [] },
        { at: 85, firing: ['TrawlBacklogNotAccepted'] },
        { at: 125, firing: [] },
      ],
    },
    {
      title: 'TrawlBacklogNotAccepted: a long queue that moves',
      series: { ...night, [oldest]: gauge([60, 0], [120, 4000]) },
      checks: silent(85, 150),
    },
    {
      title: 'TrawlSeriesGone: one server of a fleet is gone, the workers are there',
      series: {
        ...idle,
        'trawl_scrapes_settled_total{server="other",tool="t",outcome="succeeded",instance="w1",job="trawl"}': gauge([90, 3], [90, Number.NaN]),
      },
      checks: [
        { at: 89, firing: [] },
        { at: 100, firing: ['TrawlSeriesGone'] },
        { at: 155, firing: [] },
      ],
    },
    {
      title: 'TrawlJobsInvalid: a producer sends a thousand jobs of nonsense at once',
      series: { ...night, [invalid('stream')]: born(60, 1000, 120) },
      checks: [
        { at: 59, firing: [] },
        { at: 67, firing: ['TrawlJobsInvalid'] },
        { at: 130, firing: [] },
      ],
    },
    {
      title: 'TrawlJobsInvalid: eight of them',
      series: { ...idle, [invalid('list')]: born(60, 8, 120) },
      checks: silent(67, 100),
    },
    {
      title: 'TrawlJobsInvalid: nonsense through BullMQ is rejected scrapes too, and no fault of the tool',
      series: {
        ...idle,
        ...startsNothing,
        [submitted]: counter([180, 0]),
        [invalid('bullmq')]: born(60, 50, 120),
        [settled('rejected')]: counter([60, 0], [1, 50], [119, 0]),
      },
      checks: [{ at: 75, firing: ['TrawlJobsInvalid'] }],
    },
    {
      title: 'an outage of Prometheus: counters that were there before do not look new',
      series: {
        [up]: (step) => `1+0x59 _x45 1+0x74`.slice(0, step > 0 ? undefined : 0),
        [name('process_start_time_seconds')]: (step) => `-864000+0x59 _x45 -864000+0x74`.slice(0, step > 0 ? undefined : 0),
        [invalid('stream')]: () => '900+0x59 _x45 900+0x74',
        [sinkErrors]: () => '900+0x59 _x45 900+0x74',
        [calls('poll', 'timeout')]: () => '900+0x59 _x45 900+0x74',
      },
      checks: silent(108, 112, 118, 125, 150),
    },
    {
      title: 'TrawlBurnFast: most scrapes fail',
      series: {
        ...fleet([180, 1]),
        [settled('succeeded')]: counter([60, 8.8], [80, 0], [40, 8.8]),
        [settled('empty')]: counter([60, 0.5], [80, 0], [40, 0.5]),
        [settled('failed')]: counter([60, 0.7], [80, 10], [40, 0.7]),
      },
      checks: [
        { at: 90, firing: [] },
        { at: 135, firing: ['TrawlBurnFast'] },
        { at: 150, firing: [] },
      ],
    },
    {
      title: 'TrawlBurnFast: runs miss their deadlines',
      series: {
        ...fleet([180, 1]),
        [settled('succeeded')]: counter([60, 8.8], [60, 5.8], [60, 8.8]),
        [settled('deadline_exceeded')]: counter([60, 0], [60, 3], [60, 0]),
      },
      checks: [
        { at: 59, firing: [] },
        { at: 115, firing: ['TrawlBurnFast'], muted: ['TrawlBurnSlow'] },
        { at: 160, firing: [], muted: ['TrawlBurnSlow'] },
      ],
    },
    {
      title: 'TrawlBurnFast: five failures, and nothing else, at night',
      series: { ...idle, [settled('failed')]: counter([60, 0], [5, 1], [115, 0]) },
      checks: silent(70, 100),
    },
    {
      title: 'TrawlWatchdog: fires, whatever else there is',
      series: idle,
      checks: [{ at: 5, firing: ['TrawlWatchdog'] }],
    },
  ];
}
