import type { RecordingRule } from './recording.js';
import { minutes } from './scale.js';
import { settings as s } from './settings.js';

const quarterHour = minutes(15);

interface Spans {
  /** A duration of PromQL for seconds of a real night. */
  readonly span: (seconds: number) => string;
}

/**
 * Not while a hold pages, nor for a quarter of an hour after one that did. Calls that failed meanwhile fill the windows for
 * a while after the server works again: without this they would page once the hold no longer mutes them.
 */
export const notHeldElse = ({ span }: Spans): string =>
  ` unless on (server) (trawl:server_held:pages == 1 or max_over_time(trawl:server_held:paged[${span(quarterHour)}]))`;

/**
 * Which of three alerts tells of a server that gives no answer worth having. A hold for `unreachable` says only that nothing
 * may start; what calls met says whether the server refuses connections (TrawlServerUnreachable), hangs or answers with HTTP
 * errors (TrawlServerFailing), or answers with JSON-RPC errors (TrawlProtocolErrors). Whichever is first told keeps the
 * incident until it is over: a server that hangs is held minutes later, and that is no second page.
 */
export function heldRules({ span }: Spans): RecordingRule[] {
  const quarter = span(quarterHour);
  const told = span(s.for.hold);
  const unreachable = 'max by (server) (trawl:server_held{reason="unreachable"})';
  const held = `${unreachable} == 1`;
  /** Counters and the gauge of a hold come from different processes: what calls met is known a little later. */
  const heldForLong = `min_over_time(trawl:server_held{reason="unreachable"}[${span(s.bridge)}]) == 1`;
  const [failed, protocol] = ['trawl:mcp_failed:count_5m', 'trawl:protocol_errors:count_5m'];
  /** 1 and 0, so that `min_over_time` says how long. */
  const flag = (condition: string) => `(0 * (${condition}) + 1) or 0 * ${unreachable}`;
  const paged = `max_over_time(trawl:server_held:paged[${quarter}])`;
  const failingTold = `last_over_time(trawl:server_failing:told[${quarter}])`;
  const ratio = `(trawl:mcp_failed:ratio_15m or 0 * ${unreachable})`;
  const fails = [
    `(trawl:mcp_failed:ratio_1h > ${s.failed.ratio} and trawl:mcp_failed:ratio_15m > ${s.failed.ratio}` +
      ` and trawl:mcp_calls:count_1h >= ${s.failed.minCalls - 0.5})`,
    `(trawl:mcp_failed:ratio_15m and trawl:mcp_failed:count_15m >= ${s.failed.row - 0.5}` +
      ` and trawl:mcp_failed:count_1h >= ${s.failed.row - 0.5} unless trawl:mcp_ok:count_1h > 0.5)`,
    // With calls that time out after a minute, the ratio over an hour comes later than that nothing ends.
    `(trawl:mcp_failed:ratio_15m and ${failed} >= ${s.failed.row - 0.5} unless trawl:mcp_ok:count_5m > 0.5)`,
    `(${ratio} and on (server) (${heldForLong} unless on (server) trawl:server_held:protocol_errors == 1))`,
  ].join(' or ');

  return [
    {
      record: 'trawl:server_held:refused',
      expr: flag(
        `${held} and on (server) (trawl:mcp_network:count_5m > 0.5 * ${failed} or ${paged})` +
          ` unless on (server) ${failingTold}`,
      ),
    },
    {
      record: 'trawl:server_held:protocol_errors',
      expr: flag(
        `${held} and on (server) (${protocol} > 0.5 unless ${failed} >= ${protocol})` +
          ` unless on (server) (trawl:server_held:refused == 1 or ${failingTold})`,
      ),
    },
    {
      // As long as it takes to be told of. Reasons that make calls fail; a server that wants money answers.
      record: 'trawl:server_held:lasting',
      expr: `max by (server) (min_over_time(trawl:server_held{reason=~"auth|tools_missing|unreachable"}[${told}])) == 1`,
    },
    {
      /** 1 while a hold pages by itself once it lasts, 0 else. */
      record: 'trawl:server_held:pages',
      expr: 'max by (server) (trawl:server_held{reason=~"auth|tools_missing"}) + on (server) trawl:server_held:refused > bool 0',
    },
    {
      record: 'trawl:server_held:paged',
      expr: `min_over_time(trawl:server_held:pages[${told}]) == 1`,
    },
    {
      /**
       * The share of calls that fail, while that is an incident. Once told of, it stands for as long as the server is held or
       * too many calls of the last quarter of an hour failed: where few are made, each of which times out, windows empty.
       */
      record: 'trawl:server_failing',
      expr:
        `((${fails})${notHeldElse({ span })}) or (${ratio} and on (server) ${failingTold}` +
        ` and on (server) (trawl:mcp_failed:ratio_15m > ${s.failed.ratio} or ${held}))`,
    },
    { record: 'trawl:server_failing:lasts', expr: flag('trawl:server_failing') },
    {
      record: 'trawl:server_failing:told',
      expr: `min_over_time(trawl:server_failing:lasts[${told}]) == 1`,
    },
  ];
}
