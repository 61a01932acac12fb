import { settings as s } from '../settings.js';
import { type DashboardSpec, lines, quantile, server, stacked, stat, tool } from './panel.js';

const done = 'outcome=~"succeeded|empty|low_count|capped"';

export const overview: DashboardSpec = {
  uid: 'trawl-overview',
  title: 'Trawl: Overview',
  description: 'Is it working? Empty successes and refused calls first, then work, money and time.',
  panels: [
    stat({
      title: 'Empty successes, last hour',
      description:
        'Share of successful runs with nothing in them. A few per cent are usual; a jump without a change of ours means that the site behind a tool changed or blocks it.',
      runbook: 'TrawlRunsEmpty',
      unit: 'percentunit',
      queries: [
        [
          `sum(increase(trawl_scrapes_settled_total{${tool},outcome="empty"}[1h])) / (sum(increase(trawl_scrapes_settled_total{${tool},${done}}[1h])) > 0)`,
          'empty',
        ],
      ],
      thresholds: { warn: s.empty.points, serious: s.empty.factor * s.empty.assumedUsual },
      min: 0,
      max: 1,
    }),
    stat({
      title: 'Refused calls, last hour',
      description:
        'Share of calls that got a JSON-RPC error. 0 is normal; more means that a tool or the server changed under us.',
      runbook: 'TrawlProtocolErrors',
      unit: 'percentunit',
      queries: [
        [
          `sum(increase(trawl_mcp_requests_total{${server},result="protocol_error"}[1h])) / (sum(increase(trawl_mcp_requests_total{${server}}[1h])) > 0)`,
          'protocol errors',
        ],
      ],
      thresholds: { warn: 0.01, serious: s.protocol.ratio },
      min: 0,
      max: 1,
    }),
    stat({
      title: 'Backlog',
      description:
        'Scrapes that wait for a run slot and could start now. A batch makes it jump; it should fall from then on.',
      runbook: 'TrawlStalled',
      unit: 'short',
      queries: [[`sum(trawl:backlog:due{${server}})`, 'wait']],
    }),
    stat({
      title: 'Runs in flight, of the slots',
      description:
        'Full while there is a backlog; anything less then means that something holds starts back.',
      runbook: 'TrawlServerAtLimit',
      unit: 'percentunit',
      queries: [
        [
          `sum(max by (server) (trawl_runs_in_flight{${server}})) / (sum(max by (server) (trawl_run_slots{${server}})) > 0)`,
          'in use',
        ],
      ],
      min: 0,
      max: 1,
    }),
    stat({
      title: 'Cost, last 24 hours',
      description: 'As the servers reported it for runs that ended; runs under way are not in it yet.',
      runbook: 'TrawlCostsRunAway',
      unit: 'currencyUSD',
      queries: [[`sum(increase(trawl_usage_usd_total{${tool}}[1d]))`, 'cost']],
      thresholds: { serious: s.cost.dayUsd },
    }),
    stat({
      title: 'Items a second',
      description: 'Items made durable, over the last 15 minutes.',
      runbook: 'TrawlSinkRefuses',
      unit: 'short',
      queries: [[`sum(rate(trawl_items_written_total{${server}}[15m]))`, 'items']],
    }),
    stacked({
      title: 'Outcomes a minute',
      description:
        'How scrapes end. Most of it should be "succeeded"; whatever grows instead names the problem.',
      runbook: 'TrawlBurnFast',
      unit: 'short',
      queries: [
        [
          `60 * sum by (outcome) (rate(trawl_scrapes_settled_total{${tool}}[$__rate_interval]))`,
          '{{outcome}}',
        ],
      ],
    }),
    lines({
      title: 'Empty share of each tool, 15 minutes',
      description:
        'Beside it, dashed by its name, the threshold: the usual ratio of the tool, three times and by 20 points.',
      runbook: 'TrawlRunsEmpty',
      unit: 'percentunit',
      queries: [
        [`trawl:empty:ratio_15m{${tool}}`, '{{tool}}'],
        [`trawl:empty:threshold{${tool}}`, 'threshold of {{tool}}'],
      ],
      min: 0,
      max: 1,
    }),
    lines({
      title: 'Calls that fail, 15 minutes',
      description:
        'Share of calls that got no answer, an HTTP error or an unreadable one, and of those refused with a JSON-RPC error.',
      runbook: 'TrawlServerFailing',
      unit: 'percentunit',
      queries: [
        [
          `trawl:mcp_failed:ratio_15m{${server}} or 0 * trawl:mcp_calls:count_15m{${server}}`,
          '{{server}} failed',
        ],
        [
          `trawl:protocol_errors:ratio_15m{${server}} or 0 * trawl:mcp_calls:count_15m{${server}}`,
          '{{server}} refused',
        ],
      ],
      thresholds: { warn: s.protocol.ratio, serious: s.failed.ratio },
      min: 0,
      max: 1,
    }),
    lines({
      title: 'Backlog and runs in flight',
      description: 'Work that waits and work that is done, by server, with the slots as the ceiling.',
      runbook: 'TrawlStalled',
      unit: 'short',
      queries: [
        [`trawl:backlog:due{${server}}`, '{{server}} wait'],
        [`trawl:in_flight{${server}}`, '{{server}} in flight'],
        [`max by (server) (trawl_run_slots{${server}})`, '{{server}} slots'],
      ],
      min: 0,
    }),
    lines({
      title: 'Age of the backlog',
      description:
        'How long the oldest due job of each server has waited for its start, and the oldest in the public queue.',
      runbook: 'TrawlBacklogNotAccepted',
      unit: 's',
      queries: [
        [`max by (queue) (trawl_queue_oldest_age_seconds{queue=~"scrape|start-($server)"})`, '{{queue}}'],
      ],
      min: 0,
    }),
    lines({
      title: 'Time through the system',
      description: 'From submission to outcome, waiting included: what a producer feels.',
      runbook: 'TrawlPollsLate',
      unit: 's',
      queries: [
        [quantile(0.5, 'trawl_scrape_duration_seconds', tool), 'median'],
        [quantile(0.95, 'trawl_scrape_duration_seconds', tool), '95 %'],
      ],
      min: 0,
    }),
    lines({
      title: 'Objectives: share of bad ends, 1 hour',
      description: `scrapes: not succeeded or low_count, the producer's own doings left out (objective ${s.objectives.scrapes * 100} %). deadline: runs aborted at their deadline (objective ${s.objectives.deadline * 100} %).`,
      runbook: 'TrawlBurnSlow',
      unit: 'percentunit',
      queries: [[`trawl:objective:bad_ratio_1h{${server}}`, '{{server}} {{objective}}']],
      thresholds: { warn: 1 - s.objectives.scrapes, serious: s.burn.capRatio },
      min: 0,
      max: 1,
    }),
    stacked({
      title: 'Cost an hour',
      description: 'By tool, as reported when runs end.',
      runbook: 'TrawlCostsRunAway',
      unit: 'currencyUSD',
      queries: [[`trawl:cost:usd_1h{${tool}}`, '{{tool}}']],
    }),
    lines({
      title: 'Refused jobs and repeats',
      description:
        'Jobs that never became a scrape, by the door they came through, and submissions of what was known already.',
      runbook: 'TrawlJobsInvalid',
      unit: 'short',
      queries: [
        ['trawl:jobs_invalid:count_1h', 'invalid, {{source}}'],
        [`sum(increase(trawl_scrapes_deduplicated_total{${server}}[1h]))`, 'known already'],
      ],
      min: 0,
    }),
  ],
};
