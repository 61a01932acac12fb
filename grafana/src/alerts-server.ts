import type { Alert } from './alert.js';
import { notHeldElse } from './recording-held.js';
import type { Scale } from './scale.js';
import { settings as s, type Window, windows } from './settings.js';

const tool = ['server', 'tool'];
const sumOf = (series: string, extra = '') => ({
  query: (filter: string, by: string) =>
    `sum${by} (${series}{${[extra, filter].filter((each) => each !== '').join(',')}})`,
});
const percent = (ratio: number) => `${Math.round(ratio * 100)} %`;
const waiting = { what: 'scrapes wait', ...sumOf('trawl:backlog:all') };
const bothAbove = (ratio: string, least: number, short: Window = '15m') =>
  `${ratio}_1h > ${least} and ${ratio}_${short} > ${least}`;

/** What goes wrong at a server or with one of its tools. */
export function serverAlerts(scale: Scale): Alert[] {
  /** Calls that were slow or late while the server was held fill the windows for a while after it works again. */
  const notHeld = ` unless on (server) max_over_time(trawl:server_held:lasting[${scale.text(windows['15m'])}])`;
  const notHeldElsewhere = notHeldElse({ span: (seconds) => scale.text(seconds) });
  const held = (reason: string) => `trawl:server_held{reason="${reason}"} == 1`;
  return [
    {
      name: 'TrawlRunsEmpty',
      severity: 'critical',
      layer: 'cause',
      for: s.for.cause,
      labels: tool,
      expr:
        `(trawl:empty:ratio_1h > trawl:empty:threshold and trawl:empty:ratio_15m > trawl:empty:threshold` +
        ` and trawl:done:count_1h >= ${s.empty.minRuns})` +
        ` or (sum by (server, tool) (0 * trawl:empty:row) + 1` +
        ` unless trawl:empty:usual_ratio >= ${s.empty.rowUsualBelow})` +
        ` or trawl:empty:braked`,
      summary: (w) => `${w.label('tool')} on ${w.label('server')}: runs succeed with nothing in them`,
      loses: (w) => `Users of ${w.label('tool')} get no items though its runs succeed`,
      affected: { what: 'scrapes ended empty in the last hour', ...sumOf('trawl:empty:count_1h') },
      command: (w) => `trawl pause ${w.label('server')}/${w.label('tool')}`,
      detail: (w) =>
        `${w.value('percent')} of its runs were empty, against its usual ratio (above it ${s.empty.factor} times and by ${percent(s.empty.points)}), or ${s.empty.row} in a row.`,
      dashboard: 'server',
    },
    {
      name: 'TrawlSchemaChanged',
      severity: 'critical',
      layer: 'cause',
      for: s.for.cause,
      labels: tool,
      expr:
        `(${bothAbove('trawl:rejected:ratio', s.rejected.ratio)} or trawl:rejected:braked)` +
        ` and sum by (server, tool) (trawl:settled:count_1h{outcome="rejected"}) >= ${s.rejected.minScrapes - 0.5}` +
        ` and on (server) trawl:invalid_params:count_6h >= ${s.rejected.minInvalidParams - 0.5}`,
      summary: (w) =>
        `${w.label('tool')} on ${w.label('server')}: its calls are refused for their arguments, its schema changed`,
      loses: (w) => `No scrape of ${w.label('tool')} can start: the server refuses its arguments`,
      affected: {
        what: 'scrapes were rejected in the last hour',
        ...sumOf('trawl:settled:count_1h', 'outcome="rejected"'),
      },
      command: (w) => `trawl tools ${w.label('server')}`,
      detail: (w) =>
        `${w.value('percent')} of its scrapes were rejected; the server refuses the arguments of starts (-32602, or result invalid_input).`,
      dashboard: 'server',
    },
    {
      name: 'TrawlInputsRejected',
      severity: 'warning',
      layer: 'effect',
      for: s.for.effect,
      labels: tool,
      expr:
        `(${bothAbove('trawl:rejected:ratio', s.rejected.ratio)} or trawl:rejected:braked)` +
        ` and sum by (server, tool) (trawl:settled:count_1h{outcome="rejected"}) >= ${s.rejected.minScrapes - 0.5}` +
        ` unless on (server) trawl:invalid_params:count_6h >= ${s.rejected.minInvalidParams - 0.5}` +
        ` unless on () sum(trawl:jobs_invalid:count_1h{source="bullmq"})` +
        ` >= ${s.rejected.invalidShare} * sum(trawl:settled:count_1h{outcome="rejected"})`,
      summary: (w) => `${w.label('tool')} on ${w.label('server')}: inputs do not fit the tool`,
      loses: (w) => `Most scrapes of ${w.label('tool')} end rejected before they start; nothing is spent`,
      affected: {
        what: 'scrapes were rejected in the last hour',
        ...sumOf('trawl:settled:count_1h', 'outcome="rejected"'),
      },
      command: (w) => `trawl tools ${w.label('server')}`,
      detail: (w) =>
        `${w.value('percent')} of its scrapes were rejected by our check of the input, or by the server.`,
      dashboard: 'server',
    },
    {
      name: 'TrawlTokenRevoked',
      severity: 'critical',
      layer: 'hold',
      for: s.for.hold,
      labels: ['server'],
      expr: `sum by (server) (${held('auth')})`,
      summary: (w) => `${w.label('server')}: the token is refused`,
      loses: (w) => `Nothing starts on ${w.label('server')}: it refuses the token`,
      affected: waiting,
      command: () => 'trawl doctor',
      detail: () =>
        'Runs under way cannot be looked at either. Trawl goes on by itself once the token works.',
      dashboard: 'server',
    },
    {
      name: 'TrawlPaymentRequired',
      severity: 'critical',
      layer: 'hold',
      for: s.for.hold,
      labels: ['server'],
      expr: `sum by (server) (${held('payment')})`,
      summary: (w) => `${w.label('server')}: the account's limit is reached or unpaid`,
      loses: (w) => `Nothing starts on ${w.label('server')}: its account may not spend any more`,
      affected: waiting,
      command: () => 'trawl status',
      detail: () =>
        'Runs under way are finished and read. Trawl tries one start every few minutes and goes on by itself.',
      dashboard: 'server',
    },
    {
      name: 'TrawlServerUnreachable',
      severity: 'critical',
      layer: 'hold',
      for: s.for.hold,
      labels: ['server'],
      // Held for connections that are refused; a server that takes them and gives no answer is TrawlServerFailing.
      expr: 'sum by (server) (trawl:server_held:refused == 1)',
      summary: (w) => `${w.label('server')}: refuses connections`,
      loses: (w) =>
        `Nothing starts on ${w.label('server')} and nothing under way is read: it refuses connections`,
      affected: waiting,
      command: () => 'trawl doctor',
      detail: () => 'Nothing is lost. Trawl looks every 15 s and goes on by itself.',
      dashboard: 'server',
    },
    {
      name: 'TrawlToolsMissing',
      severity: 'critical',
      layer: 'hold',
      for: s.for.hold,
      labels: tool,
      expr: `sum by (server, tool) (${held('tools_missing')} or trawl:tool_held{reason="tools_missing"} == 1)`,
      summary: (w) => `${w.label('server')}: tools are not shown any more ${w.label('tool')}`,
      loses: (w) => `Scrapes of tools that ${w.label('server')} does not show any more cannot start`,
      affected: {
        what: 'scrapes wait on the server',
        query: (filter, by) => waiting.query(withoutTool(filter), by && ' by (server)'),
      },
      command: (w) => `trawl tools ${w.label('server')}`,
      detail: (w) =>
        `Tool: ${w.label('tool')} (none named: the whole list is empty, or a helper like get-actor-run is gone).`,
      dashboard: 'server',
    },
    {
      name: 'TrawlServerAtLimit',
      severity: 'warning',
      layer: 'effect',
      for: s.for.notice,
      labels: ['server', 'reason'],
      expr:
        `avg_over_time(trawl:server_held{reason=~"capacity|rate_limit"}[${scale.text(s.limit.over)}]) > ${s.limit.share}` +
        ` and on (server) trawl:mcp_refused:count_1h >= ${s.limit.minRefusals - 0.5} and on (server) trawl:backlog:due > 0`,
      summary: (w) => `${w.label('server')}: says "not now" most of the time (${w.label('reason')})`,
      loses: (w) => `The backlog of ${w.label('server')} is worked off slower than its limits allow`,
      affected: {
        what: 'scrapes wait',
        query: (filter, by) => waiting.query(onlyServer(filter), by && ' by (server)'),
      },
      command: () => 'trawl status',
      detail: (w) =>
        `Cooling down for ${w.value('percent')} of the time (${w.label('reason')}): somebody else uses the account, or runs and requestsPerSecond are set too high.`,
      dashboard: 'server',
    },
    {
      name: 'TrawlToolHeld',
      severity: 'warning',
      layer: 'effect',
      for: s.for.effect,
      labels: ['server', 'tool', 'reason'],
      expr: 'trawl:tool_held{reason!~"paused|tools_missing"} == 1',
      summary: (w) => `${w.label('tool')} on ${w.label('server')}: held (${w.label('reason')})`,
      loses: (w) => `Scrapes of ${w.label('tool')} wait; one every 5 minutes is tried`,
      affected: {
        what: 'scrapes wait on the server',
        query: (filter, by) => waiting.query(onlyServer(filter), by && ' by (server)'),
      },
      command: () => 'trawl status',
      detail: (w) => `Reason: ${w.label('reason')}. "brake": its last runs were empty, failed or rejected.`,
      dashboard: 'server',
    },
    {
      name: 'TrawlServerFailing',
      severity: 'critical',
      layer: 'cause',
      for: s.for.cause,
      labels: ['server'],
      expr: 'trawl:server_failing',
      summary: (w) => `${w.label('server')}: hangs, or answers with errors`,
      loses: (w) => `Scrapes on ${w.label('server')} start and are read late or not at all`,
      affected: waiting,
      command: () => 'trawl doctor',
      detail: (w) =>
        `${w.value('percent')} of calls timed out, were cut, or got an HTTP error or an unreadable answer.`,
      dashboard: 'server',
    },
    {
      name: 'TrawlProtocolErrors',
      severity: 'critical',
      layer: 'cause',
      for: s.for.cause,
      labels: ['server'],
      expr:
        `((${bothAbove('trawl:protocol_errors:ratio', s.protocol.ratio)} and trawl:mcp_calls:count_1h >= ${s.protocol.minCalls - 0.5})` +
        ` or (trawl:protocol_errors:ratio_15m and trawl:protocol_errors:count_15m >= ${s.protocol.row - 0.5}` +
        ` and trawl:protocol_errors:count_1h >= ${s.protocol.row - 0.5} unless trawl:mcp_ok:count_1h > 0.5)` +
        `)${notHeldElsewhere} or ((trawl:protocol_errors:ratio_15m or 0 * trawl:server_held:protocol_errors)` +
        ` and on (server) trawl:server_held:protocol_errors == 1)`,
      summary: (w) => `${w.label('server')}: answers calls with JSON-RPC errors`,
      loses: (w) => `Calls to ${w.label('server')} are refused, so scrapes stand still or fail`,
      affected: waiting,
      command: (w) => `trawl tools ${w.label('server')}`,
      detail: (w) => `${w.value('percent')} of calls got a JSON-RPC error; the codes are on the dashboard.`,
      dashboard: 'server',
    },
    {
      name: 'TrawlServerSlow',
      severity: 'warning',
      layer: 'effect',
      for: s.for.effect,
      labels: ['server'],
      expr:
        `${bothAbove('trawl:slow_calls:ratio', s.slow.ratio, '5m')} and trawl:slow_calls:calls_1h >= ${s.slow.minCalls - 0.5}` +
        ` unless trawl:mcp_failed:ratio_15m > ${s.failed.ratio}${notHeld}`,
      summary: (w) => `${w.label('server')}: answers slowly`,
      loses: (w) => `Scrapes on ${w.label('server')} take longer`,
      affected: waiting,
      command: () => 'trawl status',
      detail: (w) => `${w.value('percent')} of calls took longer than ${s.slow.seconds} s.`,
      dashboard: 'server',
    },
    {
      name: 'TrawlStartsUnanswered',
      severity: 'warning',
      layer: 'effect',
      for: s.for.notice,
      labels: ['server'],
      expr:
        `sum by (server) (trawl:settled:count_1h{outcome="start_unknown"}) >= ${s.starts.unknown - 0.5}` +
        ` or (trawl:ambiguous:count_1h >= ${s.starts.ambiguous - 0.5}` +
        ` and trawl:ambiguous:count_1h / (trawl:starts:count_1h > 0) > ${s.starts.ambiguousRatio})`,
      summary: (w) => `${w.label('server')}: answers of starts are lost`,
      loses: (w) =>
        `Scrapes on ${w.label('server')} end start_unknown, and runs may be paid for that nobody reads`,
      affected: {
        what: 'scrapes ended start_unknown in the last hour',
        ...sumOf('trawl:settled:count_1h', 'outcome="start_unknown"'),
      },
      command: () => 'trawl status',
      detail: (w) =>
        `${w.value('number')} starts in the last hour had no answer that Trawl could make sense of at once.`,
      dashboard: 'server',
    },
    {
      name: 'TrawlOrphanRuns',
      severity: 'warning',
      layer: 'notice',
      for: s.for.hold,
      labels: ['server'],
      expr: `trawl:orphans:count_1h >= ${s.orphans.minRuns - 0.5}`,
      summary: (w) => `${w.label('server')}: runs without an owner`,
      loses: (w) => `Runs on ${w.label('server')} were paid for and nobody reads them`,
      affected: {
        what: 'of them were ended, or given up, in the last hour',
        ...sumOf('trawl:orphans:count_1h'),
      },
      command: () => 'trawl status',
      detail: (w) => `${w.value('number')} runs in the last hour had no scrape that waits for them.`,
      dashboard: 'server',
    },
    {
      name: 'TrawlCostsRunAway',
      severity: 'critical',
      layer: 'notice',
      for: s.for.cause,
      labels: tool,
      expr:
        `(trawl:cost:usd_1h > ${s.cost.minUsd} and trawl:cost:per_run_1h > ${s.cost.factor} * trawl:cost:usual_per_run` +
        ` and trawl:cost:per_run_15m > ${s.cost.factor} * trawl:cost:usual_per_run)` +
        ` or trawl:cost:usd_1d > ${s.cost.dayUsd}`,
      summary: (w) => `${w.label('server')} ${w.label('tool')}: costs run away`,
      loses: (w) => `Money: ${w.label('server')} ${w.label('tool')} costs more than it usually does`,
      affected: {
        what: 'runs of the server ended in the last hour',
        query: (filter, by) => sumOf('trawl:runs:count_1h').query(onlyServer(filter), by && ' by (server)'),
      },
      command: (w) => `trawl pause ${w.label('server')}`,
      detail: (w) =>
        `${w.value('usd')} in the last hour at more than ${s.cost.factor} times the usual price of a run, or (no tool named) more than $${s.cost.dayUsd} on this server in a day.`,
      dashboard: 'server',
    },
    {
      name: 'TrawlPollsLate',
      severity: 'warning',
      layer: 'effect',
      for: s.for.effect,
      labels: ['server'],
      expr: `${bothAbove('trawl:late_polls:ratio', s.late.ratio, '5m')} and trawl:late_polls:polls_1h >= ${s.late.minPolls - 0.5}${notHeld}`,
      summary: (w) => `${w.label('server')}: polls are late`,
      loses: (w) => `The end of runs on ${w.label('server')} is noticed late; deadlines may be missed`,
      affected: { what: 'runs are under way', ...sumOf('trawl:in_flight') },
      command: () => 'trawl status',
      detail: (w) => `${w.value('percent')} of polls came more than ${s.late.seconds} s late.`,
      dashboard: 'server',
    },
  ];
}

const onlyServer = (filter: string): string =>
  filter
    .split(',')
    .filter((each) => each.startsWith('server='))
    .join(',');
const withoutTool = onlyServer;
