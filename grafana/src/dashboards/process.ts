import { settings as s } from '../settings.js';
import { type DashboardSpec, lines, server, stat } from './panel.js';

const job = `job="${s.job}"`;

export const processBoard: DashboardSpec = {
  uid: 'trawl-process',
  title: 'Trawl: Process and Redis',
  description: 'What Trawl runs on: its processes, Redis, and the destination of results.',
  panels: [
    stat({
      title: 'Workers that answer',
      description: 'Processes that Prometheus reaches.',
      runbook: 'TrawlWorkersDown',
      unit: 'short',
      queries: [[`sum(up{${job}})`, 'workers']],
    }),
    stat({
      title: 'Redis memory used',
      description: 'Of maxmemory. Redis refuses writes when it is full.',
      runbook: 'TrawlRedisNearlyFull',
      unit: 'percentunit',
      queries: [['trawl:redis_used:ratio', 'used']],
      thresholds: { warn: 0.75, serious: s.redis.fullRatio },
      onlyOnIncident: 'there is no ratio when Redis has no maxmemory',
    }),
    stat({
      title: 'Keys evicted',
      description: 'Since Redis started. Any is one too many.',
      runbook: 'TrawlRedisEvicts',
      unit: 'short',
      queries: [['max(trawl_redis_evicted_keys_total)', 'evicted']],
      thresholds: { serious: 1 },
    }),
    stat({
      title: 'Since the last fetch',
      description: 'How long ago any worker asked any queue for work.',
      runbook: 'TrawlRedisUnreachable',
      unit: 's',
      queries: [['time() - max(trawl_worker_last_fetch_timestamp_seconds)', 'ago']],
      thresholds: { serious: s.workers.unreachable },
    }),
    stat({
      title: 'Versions',
      description: 'Processes by version: more than one during a rollout only.',
      runbook: 'TrawlSeriesGone',
      unit: 'short',
      queries: [['count by (version) (trawl_build_info)', '{{version}}']],
      width: 8,
    }),
    lines({
      title: 'CPU by process',
      description: 'Cores in use. One process is one thread: near 1 it is busy, and polls become late.',
      runbook: 'TrawlPollsLate',
      unit: 'short',
      queries: [
        [`sum by (instance) (rate(process_cpu_seconds_total{${job}}[$__rate_interval]))`, '{{instance}}'],
      ],
      thresholds: { warn: 0.9 },
      min: 0,
    }),
    lines({
      title: 'Memory by process',
      description: 'Resident memory; it should level off after an hour.',
      runbook: 'TrawlWorkersDown',
      unit: 'bytes',
      queries: [[`sum by (instance) (process_resident_memory_bytes{${job}})`, '{{instance}}']],
      min: 0,
    }),
    lines({
      title: 'Event loop lag, 99 %',
      description: 'How long the process is deaf. Above a second locks are in danger.',
      runbook: 'TrawlWorkerStuck',
      unit: 's',
      queries: [[`max by (instance) (nodejs_eventloop_lag_p99_seconds{${job}})`, '{{instance}}']],
      thresholds: { warn: 1 },
      min: 0,
    }),
    lines({
      title: 'Since each worker fetched last, its slowest queue',
      description: 'A line that climbs while others stay down is a worker that is stuck.',
      runbook: 'TrawlWorkerStuck',
      unit: 's',
      queries: [['time() - min by (instance) (trawl_worker_last_fetch_timestamp_seconds)', '{{instance}}']],
      thresholds: { serious: s.workers.stuck },
      min: 0,
    }),
    lines({
      title: 'Redis memory',
      description: 'Used, and the limit (0: none).',
      runbook: 'TrawlRedisNearlyFull',
      unit: 'bytes',
      queries: [
        ['max(trawl_redis_memory_used_bytes)', 'used'],
        ['max(trawl_redis_memory_max_bytes)', 'limit'],
      ],
      min: 0,
    }),
    lines({
      title: 'Results written a second',
      description: 'Bytes of pages made durable.',
      runbook: 'TrawlSinkRefuses',
      unit: 'Bps',
      queries: [
        [`sum by (server) (rate(trawl_result_bytes_total{${server}}[$__rate_interval]))`, '{{server}}'],
      ],
      min: 0,
    }),
    lines({
      title: 'Pages written a second',
      description: 'Pages made durable, by server; about one a scrape and more for large ones.',
      runbook: 'TrawlSinkRefuses',
      unit: 'short',
      queries: [
        [`sum by (server) (rate(trawl_pages_written_total{${server}}[$__rate_interval]))`, '{{server}}'],
      ],
      min: 0,
    }),
    lines({
      title: 'Refused writes and holds of the sink',
      description: 'Writes refused in 5 minutes, and 1 while results are held back.',
      runbook: 'TrawlSinkRefuses',
      unit: 'short',
      queries: [
        ['max by (sink) (trawl_sink_held)', '{{sink}} held'],
        [
          'sum by (sink) (increase(trawl_sink_errors_total[5m])) or 0 * max by (sink) (trawl_sink_held)',
          '{{sink}} refused',
        ],
      ],
      min: 0,
    }),
  ],
};
