import type { Alert } from './alert.js';
import type { Scale } from './scale.js';
import { settings as s, type Window, windows } from './settings.js';

/** What goes wrong under all servers: processes, Redis, the sink, the work as a whole. */
export function fleetAlerts(scale: Scale): Alert[] {
  const text = (span: number) => scale.text(span);
  const seconds = (span: number) => scale.seconds(span);
  const lastKnown = `last_over_time(trawl:open_scrapes[${text(s.workers.lastKnown)}])`;
  const openScrapes = { what: 'scrapes are open', query: () => `sum(${lastKnown})` };
  const submitted = 'trawl_scrapes_submitted_total';
  const settledIn = (span: number) =>
    `sum by (server) (increase(trawl_scrapes_settled_total[${text(span)}]))`;
  const polls = `sum by (server) (increase(trawl_mcp_requests_total{operation="poll",result="ok"}[${text(s.stalled.after)}])) > 0`;
  const shortRuns =
    `histogram_quantile(0.9, sum by (server, le) (increase(trawl_run_duration_seconds_bucket[${text(86_400)}])))` +
    ` <= ${s.stalled.shortRun}`;
  /**
   * Work that could get on for all of the span, a moment's cool-down aside. A batch that has just begun or goes on, on a server
   * that is new or was idle or held before, is no stall.
   */
  const quietFor = (span: number) =>
    `(trawl:work:count and on (server) (trawl:work:free == 1 and trawl:work:free offset ${text(span)}` +
    ` and avg_over_time(trawl:work:free[${text(span)}]) >= ${s.stalled.share}) and on (server) ${settledIn(span)} == 0)`;
  return [
    {
      name: 'TrawlWorkersDown',
      severity: 'critical',
      layer: 'platform',
      for: s.for.platform,
      labels: [],
      expr: `${lastKnown} > 0 unless on () (sum(up{job="${s.job}"}) > 0)`,
      summary: () => 'No worker answers, and scrapes wait',
      loses: () => 'No scrape is worked on: not one worker answers',
      affected: openScrapes,
      command: () => 'trawl work',
      detail: (w) =>
        `${w.value('number')} scrapes were open when a worker was last seen. Runs under way go on at the servers and cost money.`,
      dashboard: 'process',
    },
    {
      name: 'TrawlWorkerStuck',
      severity: 'warning',
      layer: 'effect',
      for: s.for.notice,
      labels: ['instance'],
      expr:
        `time() - min by (instance) (trawl_worker_last_fetch_timestamp_seconds) > ${seconds(s.workers.stuck)}` +
        ` unless on () (time() - max(trawl_worker_last_fetch_timestamp_seconds) > ${seconds(s.workers.unreachable)})`,
      summary: (w) => `Worker ${w.label('instance')} does not ask a queue for work any more`,
      loses: () => 'Scrapes may wait longer: a worker looks alive and takes nothing from one of its queues',
      affected: openScrapes,
      command: () => 'trawl status',
      detail: (w) => `Its last fetch from the queue was ${w.value('seconds')} ago; others fetch.`,
      dashboard: 'process',
    },
    {
      name: 'TrawlRedisUnreachable',
      severity: 'critical',
      layer: 'platform',
      for: s.for.platform,
      labels: [],
      expr: `time() - max(trawl_worker_last_fetch_timestamp_seconds) > ${seconds(s.workers.unreachable)}`,
      summary: () => 'Workers run and none gets an answer from Redis',
      loses: () => 'No scrape is accepted or worked on: Redis does not answer the workers',
      affected: openScrapes,
      command: () => 'trawl doctor',
      detail: (w) =>
        `No worker has fetched from any queue for ${w.value('seconds')}. Runs under way go on at the servers.`,
      dashboard: 'process',
    },
    {
      name: 'TrawlRedisNearlyFull',
      severity: 'critical',
      layer: 'platform',
      for: s.for.hold,
      labels: [],
      expr: `max_over_time(trawl:redis_used:ratio[${text(s.bridge)}]) > ${s.redis.fullRatio}`,
      summary: () => 'Redis is nearly full',
      loses: () => 'Soon no scrape can be submitted or worked on: Redis refuses writes when it is full',
      affected: openScrapes,
      command: () => 'trawl status',
      detail: (w) => `${w.value('percent')} of maxmemory is used (limit ${s.redis.fullRatio * 100} %).`,
      dashboard: 'process',
    },
    {
      name: 'TrawlRedisEvicts',
      severity: 'critical',
      layer: 'platform',
      for: s.for.platform,
      labels: [],
      expr: `max(trawl_redis_evicted_keys_total) - max(trawl_redis_evicted_keys_total offset ${text(s.redis.evictedOver)}) > 0`,
      summary: () => 'Redis throws keys away: scrapes may be lost',
      loses: () => 'Scrapes may be lost: Redis evicts keys to make room',
      affected: openScrapes,
      command: () => 'trawl doctor',
      detail: (w) =>
        `${w.value('number')} keys evicted in the last 15 minutes; maxmemory-policy has to be noeviction.`,
      dashboard: 'process',
    },
    {
      name: 'TrawlSinkRefuses',
      severity: 'critical',
      layer: 'platform',
      for: s.for.platform,
      labels: ['sink'],
      expr: `trawl:sink_errors:count_5m >= ${s.sink.minErrors - 0.5} and on (sink) max by (sink) (trawl_sink_held) == 1`,
      summary: (w) => `Sink ${w.label('sink')} refuses writes`,
      loses: () => 'No results are written and nothing settles: the destination of results takes no writes',
      affected: openScrapes,
      command: () => 'trawl doctor',
      detail: (w) =>
        `${w.value('number')} writes were refused in 5 minutes. Nothing is lost; what is held goes on by itself.`,
      dashboard: 'overview',
    },
    {
      name: 'TrawlStalled',
      severity: 'critical',
      layer: 'effect',
      for: s.for.notice,
      labels: ['server'],
      // Runs that are polled and usually take long are no stall: nothing can settle before they end.
      expr:
        `((${quietFor(s.stalled.after)} unless on (server) (${polls} unless on (server) ${shortRuns}))` +
        ` or ${quietFor(s.stalled.longRuns)})`,
      summary: (w) => `${w.label('server')}: there is work and nothing settles`,
      loses: (w) =>
        `Nothing has ended on ${w.label('server')} for 15 minutes though there is work, and nothing holds it`,
      affected: { what: 'scrapes wait', query: (filter, by) => `sum${by} (trawl:backlog:all{${filter}})` },
      command: () => 'trawl status',
      detail: (w) =>
        `${w.value('number')} scrapes wait for a start or are under way; no settlement, no hold, no pause.`,
      dashboard: 'queues',
    },
    {
      name: 'TrawlBacklogNotAccepted',
      severity: 'critical',
      layer: 'effect',
      for: s.for.notice,
      labels: [],
      expr:
        `max(trawl_queue_oldest_age_seconds{queue="scrape"}) > ${seconds(s.stalled.after)}` +
        ` and on () (sum(increase(${submitted}[${text(s.stalled.after)}])) + sum(increase(trawl_scrapes_settled_total[${text(s.stalled.after)}])) == 0)`,
      summary: () => 'Submitted scrapes are not taken up',
      loses: () => 'Submitted scrapes are not accepted, on any server',
      affected: {
        what: 'scrapes wait in the public queue',
        query: () => 'sum(max by (state) (trawl_queue_jobs{queue="scrape",state=~"waiting|prioritized"}))',
      },
      command: () => 'trawl status',
      detail: (w) =>
        `The oldest has waited ${w.value('seconds')}; nothing was accepted and nothing settled for 15 minutes.`,
      dashboard: 'queues',
    },
    {
      name: 'TrawlTrafficStopped',
      severity: 'warning',
      layer: 'notice',
      for: s.for.notice,
      labels: ['server'],
      expr:
        `(sum by (server) (increase(${submitted}[${text(s.traffic.day)}])) == 0)` +
        ` and sum by (server) (increase(${submitted}[${text(s.traffic.day)}] offset ${text(s.traffic.day)})) > 0` +
        ` and sum by (server) (increase(${submitted}[${text(s.traffic.day)}] offset ${text(2 * s.traffic.day)})) > 0` +
        ` unless sum by (server) (increase(${submitted}[${text(s.traffic.day)}] offset ${text(s.traffic.week)})) == 0`,
      summary: (w) => `${w.label('server')}: nothing was submitted for more than a day`,
      loses: (w) => `The batches that usually come every day for ${w.label('server')} did not come`,
      affected: {
        what: 'scrapes came on the day before',
        query: (filter, by) =>
          `sum${by} (increase(${submitted}{${filter}}[${text(s.traffic.day)}] offset ${text(s.traffic.day)}))`,
      },
      command: () => 'trawl status',
      detail: () =>
        'None in 26 hours, though the two days before and the same day a week ago had some. Look at the producer.',
      dashboard: 'overview',
    },
    {
      name: 'TrawlSeriesGone',
      severity: 'warning',
      layer: 'notice',
      for: s.for.notice,
      labels: ['server'],
      expr:
        `group by (server) (trawl_scrapes_settled_total offset ${text(s.gone)})` +
        ` unless group by (server) (trawl_scrapes_settled_total)`,
      summary: (w) => `${w.label('server')}: its metrics are gone`,
      loses: (w) => `Nobody would notice if ${w.label('server')} failed: its metrics are gone`,
      affected: openScrapes,
      command: () => 'trawl status',
      detail: () =>
        'They were there an hour ago. No worker is scraped, or the server was taken out of trawl.yaml.',
      dashboard: 'process',
    },
    {
      name: 'TrawlPausedLong',
      severity: 'warning',
      layer: 'notice',
      for: s.paused,
      labels: ['server', 'tool'],
      expr: `sum by (server, tool) (trawl:server_held{reason="paused"} == 1 or trawl:tool_held{reason="paused"} == 1)`,
      summary: (w) => `${w.label('server')} ${w.label('tool')}: paused for more than a day`,
      loses: (w) => `Scrapes on ${w.label('server')} ${w.label('tool')} wait until somebody resumes it`,
      affected: {
        what: 'scrapes wait on the server',
        query: (filter, by) => {
          const server = filter.split(',').filter((each) => each.startsWith('server='));
          return `sum${by && ' by (server)'} (trawl:backlog:all{${server.join(',')}})`;
        },
      },
      command: (w) => `trawl resume ${w.label('server')}`,
      detail: () => 'Only an operator resumes what an operator paused.',
      dashboard: 'server',
    },
    {
      name: 'TrawlJobsInvalid',
      severity: 'warning',
      layer: 'notice',
      for: s.for.notice,
      labels: ['source'],
      expr:
        `trawl:jobs_invalid:count_1h >= ${s.invalid.minJobs - 0.5} and on () trawl:jobs_invalid:ratio_1h > ${s.invalid.ratio}` +
        ` and on () trawl:jobs_invalid:ratio_15m > ${s.invalid.ratio}`,
      summary: (w) => `A producer sends jobs that are none (${w.label('source')})`,
      loses: (w) => `Jobs that come through ${w.label('source')} are turned away and never become scrapes`,
      affected: {
        what: 'jobs in the last hour',
        query: (filter, by) => `sum${by} (trawl:jobs_invalid:count_1h{${filter}})`,
      },
      command: () => 'trawl status',
      detail: (w) =>
        `${w.value('number')} in the last hour; the reasons are in the log (event job.invalid) and in intake:rejected.`,
      dashboard: 'overview',
    },
    ...burnAlerts(scale),
    {
      name: 'TrawlWatchdog',
      severity: 'info',
      layer: 'watch',
      for: 0,
      labels: [],
      expr: 'vector(1)',
      summary: () => 'Always fires: rules are evaluated and notifications arrive',
      loses: () => 'Nothing. When this stops arriving, nobody would be told of anything',
      affected: null,
      command: () => 'trawl status',
      detail: () => 'Send it to something that calls when it does not come.',
      dashboard: 'overview',
    },
  ];
}

interface Pair {
  readonly factor: number;
  readonly long: Window;
  readonly short: string;
  readonly volume: string;
}

/**
 * @param seen the objective has to have been measured for half of the long window: a week-old budget is not judged by its
 * first hour
 */
function burnAlerts(scale: Scale): Alert[] {
  const windowed = (least: number, pairs: readonly Pair[], seen: boolean) =>
    pairs
      .map(({ factor, long, short, volume }) => {
        const limit = `on (objective) group_left () ${limits(factor)}`;
        return (
          `(trawl:objective:bad_ratio_${long} > ${limit} and trawl:objective:bad_ratio_${short} > ${limit}` +
          ` and trawl:objective:total_${volume} >= ${least}` +
          `${seen ? ` and trawl:objective:total_5m offset ${scale.text(windows[long] / 2)}` : ''})`
        );
      })
      .join(' or ');
  const bad = {
    what: 'scrapes ended otherwise than asked in the last hour',
    query: (filter: string, by: string) =>
      `sum${by} (trawl:objective:bad_ratio_1h{${filter}} * trawl:objective:total_1h{${filter}})`,
  };
  const common = {
    layer: 'effect' as const,
    labels: ['server', 'objective'],
    affected: bad,
    command: () => 'trawl status',
    dashboard: 'overview' as const,
  };
  return [
    {
      ...common,
      name: 'TrawlBurnFast',
      severity: 'critical',
      for: s.for.effect,
      expr: windowed(s.burn.minFast, s.burn.fast, false),
      summary: (w) =>
        `${w.label('server')}: the objective "${w.label('objective')}" will be missed within days`,
      loses: (w) =>
        `Too many scrapes on ${w.label('server')} end otherwise than asked (objective ${w.label('objective')})`,
      detail: (w) =>
        `${w.value('percent')} of them are bad: 14.4 times the budget over 1 h and 5 min, or 6 times over 6 h and 30 min.`,
    },
    {
      ...common,
      name: 'TrawlBurnSlow',
      severity: 'warning',
      for: s.for.effect,
      expr: windowed(s.burn.minSlow, s.burn.slow, true),
      summary: (w) =>
        `${w.label('server')}: the objective "${w.label('objective')}" will be missed this month`,
      loses: (w) =>
        `More scrapes on ${w.label('server')} than agreed end otherwise than asked (objective ${w.label('objective')})`,
      detail: (w) =>
        `${w.value('percent')} of them are bad: 3 times the budget over 1 d and 2 h, or all of it over 3 d and 6 h.`,
    },
  ];
}

/** `factor` times the error budget of each objective, as a vector by objective. */
function limits(factor: number): string {
  const each = Object.entries(s.objectives).map(([name, objective]) => {
    const limit = Math.min(factor * (1 - objective), s.burn.capRatio).toFixed(4);
    return `label_replace(vector(${limit}), "objective", "${name}", "", "")`;
  });
  return `(${each.join(' or ')})`;
}
