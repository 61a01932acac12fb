import { settings as s } from '../settings.js';
import { type DashboardSpec, lines, queue, server, stacked, stat, tool } from './panel.js';

export const queues: DashboardSpec = {
  uid: 'trawl-queues',
  title: 'Trawl: Queues',
  description: 'Where scrapes are on their way: accepted, waiting for a slot, under way, being read.',
  panels: [
    stat({
      title: 'Open scrapes',
      description: 'Everything submitted and not settled.',
      runbook: 'TrawlWorkersDown',
      unit: 'short',
      queries: [['trawl:open_scrapes', 'open']],
      width: 6,
    }),
    stat({
      title: 'Waiting for a start',
      description: 'Due now, by the chosen servers; jobs of held tools are set aside and not in it.',
      runbook: 'TrawlStalled',
      unit: 'short',
      queries: [[`sum(trawl:backlog:due{${server}})`, 'due']],
      width: 6,
    }),
    stat({
      title: 'Oldest in the public queue',
      description: 'Seconds, mostly: the public queue is emptied at once.',
      runbook: 'TrawlBacklogNotAccepted',
      unit: 's',
      queries: [['max(trawl_queue_oldest_age_seconds{queue="scrape"})', 'oldest']],
      thresholds: { serious: s.stalled.after },
      width: 6,
    }),
    stat({
      title: 'Settled, last 15 minutes',
      description: 'Nothing here for 15 minutes, with work to do and no hold, is a stall.',
      runbook: 'TrawlStalled',
      unit: 'short',
      queries: [[`sum(trawl:settled:count_15m{${tool}})`, 'settled']],
      width: 6,
    }),
    stacked({
      title: 'Jobs that wait, by queue',
      description: 'start: for a slot. poll: for its time. pages: to be read. abort: to be ended.',
      runbook: 'TrawlStalled',
      unit: 'short',
      queries: [
        [
          `sum by (queue) (max by (queue, state) (trawl_queue_jobs{${queue},state=~"waiting|prioritized|delayed"}))`,
          '{{queue}}',
        ],
      ],
    }),
    stacked({
      title: 'Jobs in hand, by queue',
      description: 'What workers work on now.',
      runbook: 'TrawlWorkerStuck',
      unit: 'short',
      queries: [[`max by (queue) (trawl_queue_jobs{${queue},state="active"})`, '{{queue}}']],
    }),
    lines({
      title: 'Age of the oldest due job',
      description:
        'A start job may wait as long as the backlog takes; poll, pages and abort should stay at seconds.',
      runbook: 'TrawlPollsLate',
      unit: 's',
      queries: [[`max by (queue) (trawl_queue_oldest_age_seconds{${queue}})`, '{{queue}}']],
      min: 0,
    }),
    lines({
      title: 'Submitted and settled a minute',
      description: 'Over a night both come to the same.',
      runbook: 'TrawlTrafficStopped',
      unit: 'short',
      queries: [
        [`60 * sum(rate(trawl_scrapes_submitted_total{${tool}}[$__rate_interval]))`, 'submitted'],
        [`60 * sum(rate(trawl_scrapes_settled_total{${tool}}[$__rate_interval]))`, 'settled'],
      ],
      min: 0,
    }),
    lines({
      title: 'Jobs taken back from lost workers',
      description: 'In 15 minutes, by queue. Some after a deploy; many mean that workers crash or freeze.',
      runbook: 'TrawlWorkerStuck',
      unit: 'short',
      queries: [[`sum by (queue) (increase(trawl_stalled_jobs_total{${queue}}[15m]))`, '{{queue}}']],
      onlyOnIncident: 'a series appears with the first job that a worker lost',
      min: 0,
    }),
    lines({
      title: 'Since each queue was asked for work last',
      description: 'The worker that asked last counts. Some seconds, also while idle.',
      runbook: 'TrawlRedisUnreachable',
      unit: 's',
      queries: [
        [`time() - max by (queue) (trawl_worker_last_fetch_timestamp_seconds{${queue}})`, '{{queue}}'],
      ],
      thresholds: { serious: s.workers.unreachable },
      min: 0,
    }),
  ],
};
