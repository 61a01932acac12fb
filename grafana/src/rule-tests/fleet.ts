import {
  born,
  type Case,
  counter,
  fetched,
  fleet,
  gauge,
  jobs,
  name,
  type SeriesSet,
  settled,
  submitted,
  tool,
  until,
  up,
  type Values,
} from './series.js';

const night = fleet([100, 1]);
const idle = fleet([100, 0]);
const used = name('trawl_redis_memory_used_bytes');
const evicted = name('trawl_redis_evicted_keys_total');
const sinkErrors = name('trawl_sink_errors_total', 'sink="file"');
const sinkHeld = name('trawl_sink_held', 'sink="file"');
const invalid = (source: string) => name('trawl_jobs_invalid_total', `source="${source}"`);
const oldest = name('trawl_queue_oldest_age_seconds', 'queue="scrape"');
/** As on a good night, then nothing for 40 minutes, then good again. */
const pausing = (perMinute: number) => counter([30, perMinute], [40, 0], [30, perMinute]);
const nothingSettles: SeriesSet = {
  [settled('succeeded')]: pausing(8.8),
  [settled('empty')]: pausing(0.5),
  [settled('failed')]: pausing(0.7),
};
/** Fetches until a minute, stands still, and goes on. */
const interrupted =
  (from: number, to: number): Values =>
  (step) =>
    `0+${60 * step}x${from / step - 1} ${60 * (from - step)}+0x${(to - from) / step - 1} ${60 * to}+${60 * step}x${(100 - to) / step - 1}`;
/** Samples until a minute, none for a while, and the same again. */
const unseen =
  (value: number): Values =>
  (step) =>
    `${value}+0x${30 / step - 1} _x${30 / step} ${value}+0x${40 / step - 1}`;

/** What goes wrong under all servers, and what only looks like it. One group of series each. */
export function fleetCases(): Case[] {
  return [
    {
      title: 'TrawlWorkersDown: all workers are killed with a backlog',
      series: { ...until(30, night), [up]: gauge([30, 1], [40, 0]) },
      checks: [
        { at: 28, firing: [] },
        { at: 36, firing: ['TrawlWorkersDown'] },
        { at: 50, firing: ['TrawlWorkersDown'] },
      ],
      page: {
        at: 40,
        alert: 'TrawlWorkersDown',
        labels: { severity: 'critical', layer: 'platform' },
        annotations: {
          summary: 'No worker answers, and scrapes wait',
          description:
            'No scrape is worked on: not one worker answers; 60 scrapes are open, since 1970-01-01 00:30:00 +0000 UTC. Type: trawl work\n' +
            '60 scrapes were open when a worker was last seen. Runs under way go on at the servers and cost money.',
          runbook_url: 'http://localhost:3000/public/runbooks/TrawlWorkersDown.md',
          dashboard_url: 'http://localhost:3000/d/trawl-process',
        },
      },
    },
    {
      title: 'TrawlRunsEmpty: every run turns empty, and the page says so',
      series: {
        ...night,
        [settled('succeeded')]: pausing(8.8),
        [settled('empty')]: counter([30, 0.5], [40, 9.3], [30, 0.5]),
      },
      checks: [
        { at: 28, firing: [] },
        { at: 42, firing: ['TrawlRunsEmpty'] },
        { at: 98, firing: [] },
      ],
      page: {
        at: 40,
        alert: 'TrawlRunsEmpty',
        labels: { severity: 'critical', layer: 'cause', server: 'apify', tool },
        annotations: {
          summary: `${tool} on apify: runs succeed with nothing in them`,
          description:
            `Users of ${tool} get no items though its runs succeed; 108 scrapes ended empty in the last hour, since 1970-01-01 00:34:00 +0000 UTC. Type: trawl pause apify/${tool}\n` +
            '100% of its runs were empty, against its usual ratio (above it 3 times and by 20 %), or 10 in a row.',
          runbook_url: 'http://localhost:3000/public/runbooks/TrawlRunsEmpty.md',
          dashboard_url: `http://localhost:3000/d/trawl-server?var-server=apify&var-tool=${tool}`,
        },
      },
    },
    {
      title: 'TrawlWorkersDown: they come back after some time',
      series: { ...night, [up]: gauge([30, 1], [30, 0], [40, 1]) },
      checks: [
        { at: 36, firing: ['TrawlWorkersDown'] },
        { at: 62, firing: [] },
      ],
    },
    {
      title: 'an idle fleet that is scaled to nothing',
      series: { ...until(70, idle), [up]: gauge([70, 1], [70, 0]) },
      // After an hour that its metrics are missed, and not for ever.
      checks: [
        { at: 68, firing: [] },
        { at: 80, firing: ['TrawlSeriesGone'] },
        { at: 136, firing: [] },
      ],
    },
    {
      title: 'not a single series of ours',
      series: { 'up{job="other"}': gauge([40, 1]) },
      checks: [{ at: 38, firing: [] }],
    },
    {
      title: 'TrawlWorkerStuck: one worker takes nothing from one queue any more, and is restarted',
      series: { ...night, [fetched('start-apify')]: interrupted(30, 60) },
      checks: [
        { at: 38, firing: [] },
        { at: 48, firing: ['TrawlWorkerStuck'] },
        { at: 62, firing: [] },
      ],
    },
    {
      title: 'TrawlRedisUnreachable: no queue of any worker is fetched from, until Redis is back',
      series: {
        ...night,
        ...nothingSettles,
        [fetched('scrape')]: interrupted(30, 70),
        [fetched('start-apify')]: interrupted(30, 70),
      },
      checks: [
        { at: 28, firing: [] },
        { at: 34, firing: ['TrawlRedisUnreachable'] },
        { at: 68, firing: ['TrawlRedisUnreachable'], muted: ['TrawlStalled'] },
        { at: 72, firing: [] },
      ],
    },
    {
      title: 'TrawlRedisNearlyFull: the backlog fills Redis, and is worked off',
      series: { ...night, [used]: gauge([30, 2e8], [40, 9.8e8], [30, 3e8]) },
      checks: [
        { at: 28, firing: [] },
        { at: 36, firing: ['TrawlRedisNearlyFull'] },
        { at: 74, firing: [] },
      ],
    },
    {
      title: 'TrawlRedisEvicts: keys are thrown away',
      series: { ...night, [evicted]: counter([30, 0], [4, 7], [66, 0]) },
      checks: [
        { at: 28, firing: [] },
        { at: 36, firing: ['TrawlRedisEvicts'] },
        { at: 54, firing: [] },
      ],
    },
    {
      title: 'TrawlSinkRefuses: the disk is full, nothing settles, no stall is told',
      series: {
        ...night,
        ...nothingSettles,
        [sinkErrors]: born(30, 40, 40, 20),
        [sinkHeld]: gauge([30, 0], [40, 1], [30, 0]),
      },
      checks: [
        { at: 28, firing: [] },
        { at: 34, firing: ['TrawlSinkRefuses'] },
        { at: 68, firing: ['TrawlSinkRefuses'] },
        { at: 74, firing: [] },
      ],
    },
    {
      title: 'TrawlBacklogNotAccepted: submitted scrapes lie in the public queue',
      series: {
        ...idle,
        [jobs('scrape', 'waiting')]: gauge([30, 0], [40, 500], [30, 0]),
        [oldest]: (step) => `0+0x${30 / step - 1} 0+${60 * step}x${40 / step - 1} 0+0x${30 / step - 1}`,
      },
      checks: [
        { at: 44, firing: [] },
        { at: 56, firing: ['TrawlBacklogNotAccepted'] },
        { at: 72, firing: [] },
      ],
    },
    {
      title: 'TrawlBacklogNotAccepted: a long queue that moves',
      series: { ...night, [oldest]: gauge([100, 4000]) },
      checks: [{ at: 90, firing: [] }],
    },
    {
      title: 'TrawlJobsInvalid: a producer sends a thousand jobs of nonsense at once',
      series: { ...idle, [invalid('stream')]: born(30, 1000, 70) },
      checks: [
        { at: 28, firing: [] },
        { at: 38, firing: ['TrawlJobsInvalid'] },
        { at: 60, firing: [] },
      ],
    },
    {
      title: 'TrawlJobsInvalid: nonsense through BullMQ is rejected scrapes too, and no fault of the tool',
      series: {
        ...idle,
        [submitted]: counter([100, 0]),
        [invalid('bullmq')]: born(30, 50, 70),
        [settled('rejected')]: counter([30, 0], [2, 25], [68, 0]),
      },
      checks: [{ at: 40, firing: ['TrawlJobsInvalid'] }],
    },
    {
      title: 'a little of everything, below every volume',
      series: {
        ...night,
        // A restart, two calls of some minutes each, no maxmemory, one refused write, a hold that another process lifted,
        [up]: gauge([30, 1], [2, 0], [68, 1]),
        [fetched('start-apify')]: interrupted(40, 48),
        [used]: gauge([100, 9.8e9]),
        [name('trawl_redis_memory_max_bytes')]: gauge([100, 0]),
        [sinkErrors]: born(50, 1, 50),
        [sinkHeld]: gauge([50, 0], [50, 1]),
        // eight jobs of nonsense, and a newly elected process that tells of keys evicted long ago.
        [invalid('list')]: born(60, 8, 40),
        [evicted]: gauge([100, 12]),
        'trawl_redis_evicted_keys_total{instance="w2",job="trawl"}': gauge([60, 0], [40, 12]),
      },
      checks: [30, 32, 34, 44, 48, 52, 56, 62, 66, 70, 90].map((at) => ({ at, firing: [] })),
    },
    {
      title: 'an outage of Prometheus: counters that were there before do not look new',
      series: {
        [up]: unseen(1),
        [name('trawl_build_info', 'version="0.1.0"')]: unseen(1),
        [invalid('stream')]: unseen(900),
        [sinkErrors]: unseen(900),
        [sinkHeld]: unseen(1),
        [name('trawl_mcp_requests_total', 'server="apify",operation="poll",result="timeout"')]: unseen(900),
      },
      checks: [62, 66, 70, 76, 82, 98].map((at) => ({ at, firing: [] })),
    },
  ];
}
