import type { Logger } from 'pino';
import type { ObservedCall, SeenCall } from './session-pool.js';

/** Said by a server that has too much to do: not news, and followed by `server.cool_down` when it lasts. */
const notNow = new Set<ObservedCall['result']>(['rate_limited', 'capacity']);

/**
 * One line a call: those that failed, and at `debug` all. With it `trawl_mcp_requests_total` and
 * `trawl_mcp_protocol_errors_total` lead to a scrape and its run.
 */
export function logCall(
  log: Pick<Logger, 'debug' | 'info' | 'warn'>,
  server: string,
  call: ObservedCall,
  seen: SeenCall,
): void {
  const { operation, result, rpcCode, tool, seconds } = call;
  const { about, httpStatus, message, requestId, session } = seen;
  const level = result === 'ok' ? 'debug' : notNow.has(result) ? 'info' : 'warn';
  const entry = {
    event: 'mcp.call',
    server,
    operation,
    result,
    ...about,
    ...(tool === undefined ? {} : { tool }),
    ...(rpcCode === null ? {} : { rpcCode }),
    ...(httpStatus === null ? {} : { httpStatus }),
    ...(message === null ? {} : { message }),
    ...(requestId === null ? {} : { requestId }),
    session,
    ms: Math.round(seconds * 1000),
  };
  log[level](entry, result === 'ok' ? 'called the server' : 'a call to the server failed');
}
