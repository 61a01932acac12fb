import { settings as s } from '../settings.js';
import { type DashboardSpec, lines, quantile, server, stacked, stat, tool } from './panel.js';

const incident = (what: string) => `a series appears with the first ${what}`;

export const serverBoard: DashboardSpec = {
  uid: 'trawl-server',
  title: 'Trawl: Server',
  description: 'One MCP server and its tools: does it answer, how, how fast, and what holds it.',
  panels: [
    stat({
      title: 'Reached',
      description: '1 when the last look reached the server.',
      runbook: 'TrawlServerUnreachable',
      unit: 'bool_yes_no',
      queries: [[`min(max by (server) (trawl_server_up{${server}}))`, 'up']],
    }),
    stat({
      title: 'Held or paused',
      description:
        'Reasons in force on the server now. Trawl lifts a hold by itself; a pause is lifted by whoever made it.',
      runbook: 'TrawlTokenRevoked',
      unit: 'short',
      queries: [[`sum(max by (server, reason) (trawl_server_held{${server}}))`, 'reasons']],
      thresholds: { serious: 1 },
    }),
    stat({
      title: 'Calls a second',
      description: 'All calls to the server; requestsPerSecond in trawl.yaml is the ceiling.',
      runbook: 'TrawlServerAtLimit',
      unit: 'reqps',
      queries: [[`sum(rate(trawl_mcp_requests_total{${server}}[5m]))`, 'calls']],
    }),
    stat({
      title: 'Failed calls, 15 minutes',
      description: 'Share of calls that timed out, were cut, or got an HTTP error or an unreadable answer.',
      runbook: 'TrawlServerFailing',
      unit: 'percentunit',
      queries: [
        [`max(trawl:mcp_failed:ratio_15m{${server}} or 0 * trawl:mcp_calls:count_15m{${server}})`, 'failed'],
      ],
      thresholds: { warn: 0.05, serious: s.failed.ratio },
    }),
    stat({
      title: 'Runs, 90 % end within',
      description: 'From the start call to the end of the run, over the last day.',
      runbook: 'TrawlStalled',
      unit: 's',
      queries: [
        [
          `histogram_quantile(0.9, sum by (le) (increase(trawl_run_duration_seconds_bucket{${tool}}[1d])))`,
          '90 %',
        ],
      ],
    }),
    stat({
      title: 'Price of a run, last hour',
      description: 'What a run that ended cost on average.',
      runbook: 'TrawlCostsRunAway',
      unit: 'currencyUSD',
      queries: [[`sum(trawl:cost:usd_1h{${tool}}) / (sum(trawl:runs:count_1h{${tool}}) > 0)`, 'a run']],
    }),
    stacked({
      title: 'Calls by operation',
      description: 'Calls a second. Polls follow the runs in flight; starts follow the slots.',
      runbook: 'TrawlServerFailing',
      unit: 'reqps',
      queries: [
        [`sum by (operation) (rate(trawl_mcp_requests_total{${server}}[$__rate_interval]))`, '{{operation}}'],
      ],
    }),
    stacked({
      title: 'Calls by result',
      description: 'Calls a second by how they ended. Whatever is not ok names the trouble.',
      runbook: 'TrawlServerFailing',
      unit: 'reqps',
      queries: [
        [`sum by (result) (rate(trawl_mcp_requests_total{${server}}[$__rate_interval]))`, '{{result}}'],
      ],
    }),
    lines({
      title: 'Latency, 95 %',
      description: 'Time to the answer by operation, failures included.',
      runbook: 'TrawlServerSlow',
      unit: 's',
      queries: [[quantile(0.95, 'trawl_mcp_request_duration_seconds', server, 'operation'), '{{operation}}']],
      thresholds: { warn: s.slow.seconds },
      min: 0,
    }),
    lines({
      title: 'JSON-RPC errors by code',
      description: 'Errors in an hour. -32602 at a start: the tool wants other arguments than it did.',
      runbook: 'TrawlSchemaChanged',
      unit: 'short',
      queries: [
        [
          `sum by (operation, code) (increase(trawl_mcp_protocol_errors_total{${server}}[1h]))`,
          '{{operation}} {{code}}',
        ],
      ],
      onlyOnIncident: incident('JSON-RPC error'),
      min: 0,
    }),
    lines({
      title: '"Not now": rate limit and capacity',
      description:
        'Refusals in 15 minutes that say to come back later. Trawl cools down and tries with one run fewer.',
      runbook: 'TrawlServerAtLimit',
      unit: 'short',
      queries: [
        [
          `sum by (server, result) (increase(trawl_mcp_requests_total{${server},result=~"rate_limited|capacity"}[15m]))`,
          '{{server}} {{result}}',
        ],
      ],
      onlyOnIncident: incident('such refusal'),
      min: 0,
    }),
    lines({
      title: 'Holds, pauses and cool-downs',
      description: '1 while it is in force, by reason.',
      runbook: 'TrawlPausedLong',
      unit: 'short',
      queries: [[`max by (server, reason) (trawl_server_held{${server}})`, '{{server}} {{reason}}']],
      min: 0,
      max: 1,
    }),
    lines({
      title: 'Held tools',
      description: '1 while a tool is held, by reason; a tool that was never held has no line.',
      runbook: 'TrawlToolHeld',
      unit: 'short',
      queries: [[`max by (server, tool, reason) (trawl_tool_held{${tool}})`, '{{tool}} {{reason}}']],
      onlyOnIncident: incident('hold of a tool'),
      min: 0,
      max: 1,
    }),
    lines({
      title: 'Lateness of polls, 95 %',
      description:
        'How much later than planned polls were made. Seconds are fine; a whole interval (30 s) is not.',
      runbook: 'TrawlPollsLate',
      unit: 's',
      queries: [[quantile(0.95, 'trawl_poll_lateness_seconds', server, 'server'), '{{server}}']],
      thresholds: { warn: s.late.seconds },
      min: 0,
    }),
    stacked({
      title: 'Outcomes by tool and hour',
      description: 'What became of the scrapes of each tool in the last hour, successes left out.',
      runbook: 'TrawlInputsRejected',
      unit: 'short',
      queries: [
        [
          `sum by (tool, outcome) (trawl:settled:count_1h{${tool},outcome!="succeeded"})`,
          '{{tool}} {{outcome}}',
        ],
      ],
    }),
    lines({
      title: 'Starts without an answer, runs without an owner',
      description:
        'In an hour: starts whose answer was lost, by how that ended, and runs that nobody waited for.',
      runbook: 'TrawlStartsUnanswered',
      unit: 'short',
      queries: [
        [
          `sum by (resolution) (increase(trawl_ambiguous_starts_total{${server}}[1h]))`,
          'unanswered, {{resolution}}',
        ],
        [`sum by (action) (increase(trawl_orphan_runs_total{${server}}[1h]))`, 'no owner, {{action}}'],
      ],
      onlyOnIncident: incident('lost answer or run without an owner'),
      min: 0,
    }),
    lines({
      title: 'Further attempts',
      description: 'Attempts begun anew in an hour, by reason.',
      runbook: 'TrawlBurnFast',
      unit: 'short',
      queries: [[`sum by (reason) (increase(trawl_retries_total{${server}}[1h]))`, '{{reason}}']],
      onlyOnIncident: incident('retry'),
      min: 0,
    }),
  ],
};
