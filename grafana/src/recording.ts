import { heldRules } from './recording-held.js';
import type { Scale } from './scale.js';
import { settings as s, type Window, windows } from './settings.js';

export interface RecordingRule {
  readonly record: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Outcomes of runs that the server calls a success. */
const done = 'succeeded|empty|low_count|capped';
/** Outcomes that are the producer's doing (its input, its limit, its cancel) and no failure of the service. */
const producers = 'rejected|cancelled|capped';
/** Outcomes that are no end of a run: none was started, or nobody knows. */
const withoutRun = 'rejected|cancelled|expired|start_unknown|errored';

/** `le` as Prometheus 2 (`15`) and 3 (`15.0`) keep it. */
const upTo = (seconds: number): string => `le=~"${seconds}([.]0)?"`;

/** What the alerts and dashboards compare, evaluated once. Names say `trawl:<what>:<number>_<window>`. */
export function recordingRules(scale: Scale): RecordingRule[] {
  const span = (window: Window) => scale.text(windows[window]);
  const increase = (selector: string, window: Window) => `increase(${selector}[${span(window)}])`;
  /**
   * The increase of a counter whose series may be new: `increase` misses the value a series is born with, and with labels
   * that are not known before (a code, a result) that is the whole incident. Born means that its process was seen more
   * often in the window than it was; after an outage of Prometheus every series is new, and was seen as often.
   */
  const counted = (selector: string, window: Window) =>
    `(((${selector} unless ${selector} offset ${span(window)})` +
    ` and (count_over_time(${selector}[${span(window)}]) < on (job, instance) group_left () trawl:process:samples_${window}))` +
    ` or ${increase(selector, window)})`;
  const each = <W extends Window>(list: readonly W[], make: (window: W) => RecordingRule[]) =>
    list.flatMap(make);
  const history = `[${scale.text(s.empty.history)}:${span('6h')}] offset ${scale.text(s.empty.historyBefore)}`;
  const over = (numerator: string, denominator: string) => `${numerator} / (${denominator} > 0)`;

  return [
    ...each(['5m', '15m', '1h', '6h'], (w) => [
      {
        record: `trawl:process:samples_${w}`,
        expr: `sum by (job, instance) (count_over_time(trawl_build_info[${span(w)}]))`,
      },
    ]),
    ...each(['5m', '15m', '1h', '6h'], (w) => [
      {
        record: `trawl:settled:count_${w}`,
        expr: `sum by (server, tool, outcome) (${increase('trawl_scrapes_settled_total', w)})`,
      },
      {
        record: `trawl:done:count_${w}`,
        expr: `sum by (server, tool) (trawl:settled:count_${w}{outcome=~"${done}"})`,
      },
      {
        record: `trawl:empty:count_${w}`,
        expr: `sum by (server, tool) (trawl:settled:count_${w}{outcome="empty"})`,
      },
    ]),
    ...each(['5m', '15m', '1h'], (w) => [
      { record: `trawl:empty:ratio_${w}`, expr: over(`trawl:empty:count_${w}`, `trawl:done:count_${w}`) },
      {
        record: `trawl:rejected:ratio_${w}`,
        expr: over(
          `sum by (server, tool) (trawl:settled:count_${w}{outcome="rejected"})`,
          `sum by (server, tool) (trawl:settled:count_${w})`,
        ),
      },
    ]),
    {
      record: 'trawl:empty:usual_ratio',
      expr:
        `sum_over_time(trawl:empty:count_6h${history})` +
        ` / (sum_over_time(trawl:done:count_6h${history}) >= ${s.empty.historyRuns})`,
    },
    {
      record: 'trawl:empty:threshold',
      expr:
        `(${s.empty.factor} * trawl:empty:usual_ratio > ${s.empty.points} + trawl:empty:usual_ratio)` +
        ` or (${s.empty.points} + trawl:empty:usual_ratio)` +
        ` or (0 * trawl:done:count_1h + ${Math.max(s.empty.factor * s.empty.assumedUsual, s.empty.points + s.empty.assumedUsual).toFixed(2)})`,
    },
    {
      record: 'trawl:empty:row',
      // Half a run less and more: `increase` is extrapolated to the edges of its window.
      expr: (['5m', '15m', '1h', '6h'] as const)
        .map(
          (w) =>
            `((trawl:empty:count_${w} >= ${s.empty.row - 0.5}) unless (trawl:done:count_${w} - trawl:empty:count_${w} > 0.5))`,
        )
        .join(' or '),
    },

    ...each(['5m', '15m', '1h'], (w) => {
      const failures = 'result=~"timeout|network_error|http_error|invalid_response|session_lost"';
      return [
        {
          record: `trawl:mcp_ok:count_${w}`,
          expr: `sum by (server) (${counted('trawl_mcp_requests_total{result="ok"}', w)})`,
        },
        {
          record: `trawl:mcp_failed:count_${w}`,
          expr: `sum by (server) (${counted(`trawl_mcp_requests_total{${failures}}`, w)})`,
        },
        {
          // A start with wrong arguments is an incident of its own: TrawlSchemaChanged.
          record: `trawl:protocol_errors:count_${w}`,
          expr:
            `sum by (server) (${counted('trawl_mcp_protocol_errors_total{code!="-32602"}', w)}` +
            ` or ${counted('trawl_mcp_protocol_errors_total{code="-32602",operation!="start"}', w)})`,
        },
      ];
    }),
    {
      // Refused, or cut: what a server that is not there looks like.
      record: 'trawl:mcp_network:count_5m',
      expr: `sum by (server) (${counted('trawl_mcp_requests_total{result="network_error"}', '5m')})`,
    },
    // The short window is short: effects are over when they are over, not a quarter of an hour later.
    ...each(['5m', '1h'], (w) => [
      {
        record: `trawl:slow_calls:ratio_${w}`,
        expr: slower('trawl_mcp_request_duration_seconds', 'operation!~"poll|connect"', s.slow.seconds, w),
      },
      {
        record: `trawl:slow_calls:calls_${w}`,
        expr: `sum by (server) (${increase('trawl_mcp_request_duration_seconds_count{operation!~"poll|connect"}', w)})`,
      },
      {
        record: `trawl:late_polls:ratio_${w}`,
        expr: slower('trawl_poll_lateness_seconds', '', s.late.seconds, w),
      },
      {
        record: `trawl:late_polls:polls_${w}`,
        expr: `sum by (server) (${increase('trawl_poll_lateness_seconds_count', w)})`,
      },
    ]),
    ...each(['15m', '1h'], (w) => {
      const calls = `trawl:mcp_calls:count_${w}`;
      return [
        { record: calls, expr: `sum by (server) (${counted('trawl_mcp_requests_total', w)})` },
        { record: `trawl:mcp_failed:ratio_${w}`, expr: over(`trawl:mcp_failed:count_${w}`, calls) },
        {
          record: `trawl:mcp_refused:count_${w}`,
          expr: `sum by (server) (${counted('trawl_mcp_requests_total{result=~"rate_limited|capacity"}', w)})`,
        },
        { record: `trawl:protocol_errors:ratio_${w}`, expr: over(`trawl:protocol_errors:count_${w}`, calls) },
        {
          record: `trawl:jobs_invalid:count_${w}`,
          expr: `sum by (source) (${counted('trawl_jobs_invalid_total', w)})`,
        },
        {
          record: `trawl:jobs_invalid:ratio_${w}`,
          expr: over(
            `sum(trawl:jobs_invalid:count_${w})`,
            `(sum(trawl:jobs_invalid:count_${w}) + sum(${increase('trawl_scrapes_submitted_total', w)}))`,
          ),
        },
      ];
    }),
    ...each(['15m', '1h', '6h'], (w) => [
      {
        record: `trawl:cost:usd_${w}`,
        expr: `sum by (server, tool) (${increase('trawl_usage_usd_total', w)})`,
      },
      {
        record: `trawl:runs:count_${w}`,
        expr: `sum by (server, tool) (trawl:settled:count_${w}{outcome!~"${withoutRun}"})`,
      },
    ]),
    ...each(['15m', '1h'], (w) => [
      { record: `trawl:cost:per_run_${w}`, expr: over(`trawl:cost:usd_${w}`, `trawl:runs:count_${w}`) },
    ]),
    {
      record: 'trawl:invalid_params:count_6h',
      // Tools that start a run say it as a JSON-RPC error, `call-actor` as a tool error.
      expr:
        `sum by (server) (${counted('trawl_mcp_protocol_errors_total{operation="start",code="-32602"}', '6h')}` +
        ` or ${counted('trawl_mcp_requests_total{operation="start",result="invalid_input"}', '6h')})`,
    },
    {
      record: 'trawl:cost:usual_per_run',
      expr:
        `sum_over_time(trawl:cost:usd_6h${history})` +
        ` / (sum_over_time(trawl:runs:count_6h${history}) >= ${s.cost.historyRuns})`,
    },
    {
      record: 'trawl:cost:usd_1d',
      expr: `sum by (server) (sum_over_time(trawl:cost:usd_1h[${span('1d')}:${span('1h')}]))`,
    },
    {
      record: 'trawl:starts:count_1h',
      expr: `sum by (server) (${counted('trawl_mcp_requests_total{operation="start"}', '1h')})`,
    },
    {
      record: 'trawl:ambiguous:count_1h',
      expr: `sum by (server) (${counted('trawl_ambiguous_starts_total', '1h')})`,
    },
    {
      record: 'trawl:orphans:count_1h',
      expr: `sum by (server) (${counted('trawl_orphan_runs_total{action=~"aborted|given_up"}', '1h')})`,
    },
    {
      record: 'trawl:sink_errors:count_5m',
      expr: `sum by (sink) (${counted('trawl_sink_errors_total', '5m')})`,
    },

    {
      record: 'trawl:server_held',
      expr: `max by (server, reason) (max_over_time(trawl_server_held[${scale.text(s.bridge)}]))`,
    },
    ...heldRules({ span: (seconds) => scale.text(seconds) }),
    {
      record: 'trawl:tool_held',
      expr: `max by (server, tool, reason) (max_over_time(trawl_tool_held[${scale.text(s.bridge)}]))`,
    },
    { record: 'trawl:braked', expr: 'max by (server, tool) (trawl:tool_held{reason="brake"}) == 1' },
    ...(
      [
        ['empty', 'trawl:empty:threshold', (w: string) => `trawl:empty:count_${w}`],
        [
          'rejected',
          String(s.rejected.ratio),
          (w: string) => `sum by (server, tool) (trawl:settled:count_${w}{outcome="rejected"})`,
        ],
      ] as const
    ).map(([what, least, count]) => {
      const seen = ['5m', '15m'].map(
        (w) => `(trawl:${what}:ratio_${w} > ${least} and ${count(w)} >= ${s.brake.minRuns - 0.5})`,
      );
      /**
       * The brake stops all runs of a tool but a probe every 5 minutes: the hour before keeps its good ratio, and minutes go
       * by without a run. So what was seen as the brake took hold stands until it lets go. Were it to end with the first
       * good probe, the hold would be told of as an incident of its own.
       */
      const stands = `last_over_time(trawl:${what}:braked[${span('15m')}])`;
      return {
        record: `trawl:${what}:braked`,
        expr: `(${[...seen, stands].join(' or ')}) and on (server, tool) trawl:braked`,
      };
    }),
    { record: 'trawl:backlog:due', expr: backlog('waiting|prioritized', scale) },
    { record: 'trawl:backlog:all', expr: backlog('waiting|prioritized|delayed', scale) },
    {
      record: 'trawl:in_flight',
      expr: `max by (server) (last_over_time(trawl_runs_in_flight[${scale.text(s.bridge)}]))`,
    },
    {
      // Jobs of a held tool are set aside and do not count as due.
      record: 'trawl:work:count',
      expr: '(trawl:backlog:due or 0 * trawl:in_flight) + on (server) (trawl:in_flight or 0 * trawl:backlog:due)',
    },
    {
      // 1 while there is some that nothing holds, 0 else.
      record: 'trawl:work:free',
      expr:
        `(trawl:work:count > bool 0) * on (server) (1 - max by (server) (trawl:server_held))` +
        ` * on () group_left () (1 - (max(trawl_sink_held) or vector(0)))`,
    },
    {
      record: 'trawl:open_scrapes',
      expr: 'sum(max by (state) (trawl_queue_jobs{queue="scrape",state=~"waiting|prioritized|delayed|active|waiting-children"}))',
    },
    {
      record: 'trawl:redis_used:ratio',
      expr: over('max(trawl_redis_memory_used_bytes)', 'max(trawl_redis_memory_max_bytes)'),
    },

    ...objectiveCounts(),
    ...each(['30m', '1h', '2h', '6h', '1d', '3d'], (w) => [
      {
        // Every sample counts alike above and below, so what they are apart does not matter.
        record: `trawl:objective:bad_ratio_${w}`,
        expr: over(
          `sum_over_time(trawl:objective:bad_5m[${span(w)}])`,
          `sum_over_time(trawl:objective:total_5m[${span(w)}])`,
        ),
      },
    ]),
    {
      record: 'trawl:objective:bad_ratio_5m',
      expr: over('trawl:objective:bad_5m', 'trawl:objective:total_5m'),
    },
  ];

  function slower(histogram: string, labels: string, seconds: number, window: Window): string {
    const buckets = [labels, upTo(seconds)].filter((each) => each !== '').join(',');
    const all = labels === '' ? '' : `{${labels}}`;
    return (
      `1 - sum by (server) (${increase(`${histogram}_bucket{${buckets}}`, window)})` +
      ` / (sum by (server) (${increase(`${histogram}_count${all}`, window)}) > 0)`
    );
  }
}

/** Jobs that wait for a start, by server: the name of the queue says which. */
function backlog(states: string, scale: Scale): string {
  const selector = `trawl_queue_jobs{queue=~"start-.+",state=~"${states}"}`;
  // While another process is elected nobody reports: an alert that ended then would be told of twice.
  const jobs = `max by (queue, state) (last_over_time(${selector}[${scale.text(s.bridge)}]))`;
  return `sum by (server) (label_replace(${jobs}, "server", "$1", "queue", "start-(.+)"))`;
}

function objectiveCounts(): RecordingRule[] {
  const counts = (objective: string, all: string, bad: string): RecordingRule[] => [
    ...(['5m', '1h', '6h'] as const).map((window) => ({
      record: `trawl:objective:total_${window}`,
      expr: `sum by (server) (trawl:settled:count_${window}{${all}})`,
      labels: { objective },
    })),
    {
      record: 'trawl:objective:bad_5m',
      expr: `sum by (server) (trawl:settled:count_5m{${bad}})`,
      labels: { objective },
    },
  ];
  return [
    ...counts('scrapes', `outcome!~"${producers}"`, `outcome!~"${producers}|succeeded|low_count"`),
    ...counts('deadline', `outcome!~"${withoutRun}"`, 'outcome="deadline_exceeded"'),
  ];
}
