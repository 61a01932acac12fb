import type { ServerConfig } from '../../src/config.js';
import { createLimiter, memoryTokens } from '../../src/mcp/limiter.js';
import type { CallFailure, CallResult, ScrapeServer } from '../../src/mcp/port.js';
import { type ApifyServerOptions, createApifyServer, type Tuning } from '../../src/mcp/profiles/apify.js';
import type { ObservedCall } from '../../src/mcp/session-pool.js';

export const token = 'apify_api_canary0123456789';
export const actor = 'acme/yellowpages-scraper';

export function serverConfig(url: string, more: Partial<ServerConfig> = {}): ServerConfig {
  return {
    name: 'apify',
    profile: 'apify',
    url,
    token,
    via: 'auto',
    tools: { [actor]: { name: actor, deadlineMs: null, memory: null, minItems: null, price: null } },
    limits: { runs: 5, requestsPerSecond: 10_000, memoryMb: null },
    ...more,
  };
}

export interface Setup {
  readonly server: ScrapeServer;
  readonly observed: ObservedCall[];
  readonly logged: unknown[];
}

/** A profile over a fast limiter of this process; short bounds, so that a bound that holds shows quickly. */
export function setup(
  url: string,
  options: { config?: Partial<ServerConfig>; tuning?: Partial<Tuning> } & Partial<ApifyServerOptions> = {},
): Setup {
  const observed: ObservedCall[] = [];
  const logged: unknown[] = [];
  const log = (...args: unknown[]) => void logged.push(args);
  const server = createApifyServer({
    server: serverConfig(url, options.config),
    answerBytes: options.answerBytes ?? 1_000_000,
    limiter: options.limiter ?? createLimiter(memoryTokens(10_000)),
    observe: (call) => observed.push(call),
    log: { debug: log, warn: log } as unknown as ApifyServerOptions['log'],
    tuning: { callTimeoutMs: 15_000, readTimeoutMs: 15_000, closeGraceMs: 200, ...options.tuning },
  });
  return { server, observed, logged };
}

export function failureOf(result: CallResult<unknown>): CallFailure {
  if (result.ok) throw new Error(`expected a failure, got ${JSON.stringify(result.value)}`);
  return result.failure;
}

export function okOf<T>(result: CallResult<T>): T {
  if (!result.ok) throw new Error(`expected a value, got ${JSON.stringify(result.failure)}`);
  return result.value;
}
