import type { Config, ServerConfig } from '../config.js';
import type { CallFailure, ScrapeServer, ServerDescription } from '../mcp/port.js';
import { cleanText } from '../scrape/clean-text.js';
import { type Check, fail, ok, warn } from './check.js';

const describeTimeoutMs = 30_000;
/** More names than this are counted, not listed. */
const shownNames = 10;

/** Connects to one server, lists its tools, and judges what it says. Spends nothing: no run is started. */
export async function checkServer(server: ScrapeServer, own: ServerConfig, config: Config): Promise<Check[]> {
  const before = performance.now();
  const result = await server.describe({ fresh: true, signal: AbortSignal.timeout(describeTimeoutMs) });
  const tookMs = performance.now() - before;
  return result.ok ? judgeDescription(result.value, own, config, tookMs) : judgeFailure(result.failure, own);
}

function judgeDescription(
  seen: ServerDescription,
  own: ServerConfig,
  config: Config,
  tookMs: number,
): Check[] {
  const who = `${cleanText(seen.serverName, 60)} ${cleanText(seen.serverVersion, 30)}`.trim();
  return [
    ok('reachable', `${who}, tools listed in ${Math.round(tookMs)} ms`),
    ok('token', own.token === '' ? 'none is set, and none was asked for' : 'accepted'),
    tools(seen, own),
    limits(own, config),
    waitSecs(seen, config),
    ...lifetime(seen),
    ...reconciling(seen),
  ];
}

function tools(seen: ServerDescription, own: ServerConfig): Check {
  const found = [...seen.tools.keys()];
  const wanted = Object.keys(own.tools).length;
  if (seen.missing.length === 0) return ok('tools', `${wanted} of ${wanted} found: ${names(found)}`);
  const hint = `Compare servers.${own.name}.tools with the names in the store (user/name); a private Actor needs a token of its owner.`;
  return fail('tools', `${found.length} of ${wanted} found, missing: ${names(seen.missing)}`, hint);
}

function limits(own: ServerConfig, config: Config): Check {
  const { runs, requestsPerSecond, memoryMb } = own.limits;
  const memory = memoryMb === null ? '' : `, ${memoryMb} MB`;
  const text = `${runs} runs at once${memory}, ${requestsPerSecond} requests a second, all workers together`;
  const polls = runs / (config.poll.intervalMs / 1000);
  if (polls <= requestsPerSecond / 2) return ok('limits', text);
  const hint =
    'Poll less often (poll.interval), lower limits.runs, or raise limits.requestsPerSecond if the server allows it.';
  return warn('limits', `${text}; polling alone takes ${polls.toFixed(1)} a second`, hint);
}

function waitSecs(seen: ServerDescription, config: Config): Check {
  const text = `the server waits up to ${seen.waitSecsCap}s in a poll`;
  if (config.poll.waitSecs <= seen.waitSecsCap)
    return ok('poll.waitSecs', `${config.poll.waitSecs}s; ${text}`);
  return warn(
    'poll.waitSecs',
    `${config.poll.waitSecs}s is more than allowed; ${text}`,
    `Set it to at most ${seen.waitSecsCap}.`,
  );
}

/** A run started through `call-actor` carries a timeout; one started by the Actor's own tool does not (design B4). */
function lifetime(seen: ServerDescription): Check[] {
  switch (seen.via) {
    case 'call-actor':
      return [
        ok('run timeout', 'set on every start (call-actor), so that runs end even when no worker lives'),
      ];
    case 'direct':
      return [
        warn(
          'run timeout',
          "Starts go through the Actors' own tools, which take no timeout: a run goes on unbounded when no worker lives to abort it",
          'Use via: auto and a server that shows call-actor, or keep a worker running; jobs with options are rejected.',
        ),
      ];
    default:
      return seen.via satisfies never;
  }
}

function reconciling(seen: ServerDescription): Check[] {
  if (seen.canList) return [ok('run list', 'an unanswered start can be looked for')];
  const hint = 'Use a server that shows get-actor-run-list (tools=runs).';
  return [warn('run list', 'Not there: a start whose answer is lost ends as start_unknown', hint)];
}

function judgeFailure(failure: CallFailure, own: ServerConfig): Check[] {
  const said = cleanText(failure.message, 300);
  switch (failure.holdReason) {
    case 'auth':
      return [
        ok('reachable', own.url),
        fail('token', `refused: ${said}`, `Put a valid token into servers.${own.name}.token (or tokenFile).`),
      ];
    case 'tools_missing':
      return [
        ok('reachable', own.url),
        fail(
          'tools',
          said,
          `Check servers.${own.name}.tools for misspelt Actors (an unknown one can empty the whole list), and the token.`,
        ),
      ];
    case 'payment':
      return [
        ok('reachable', own.url),
        fail('account', said, "Look at the account's plan and usage at the provider."),
      ];
    case 'rate_limit':
    case 'capacity':
      return [warn('reachable', `${own.url} is busy: ${said}`, 'Run doctor again in a minute.')];
    case 'unreachable':
    case 'brake':
    case 'paused':
    case null: {
      const hint =
        failure.kind === 'timeout' || failure.kind === 'network_error'
          ? `Check servers.${own.name}.url and the network; https and a proxy in between included.`
          : `Check servers.${own.name}.url: it has to be an MCP endpoint over HTTP.`;
      const status = failure.httpStatus === null ? '' : ` (HTTP ${failure.httpStatus})`;
      return [fail('reachable', `${own.url}: ${said}${status}`, hint)];
    }
    default:
      return failure.holdReason satisfies never;
  }
}

function names(list: readonly string[]): string {
  const shown = list.slice(0, shownNames).map((name) => cleanText(name, 80));
  const more = list.length - shown.length;
  return `${shown.join(', ') || 'none'}${more > 0 ? ` and ${more} more` : ''}`;
}
