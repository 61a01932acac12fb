import type { ServerResponse } from 'node:http';
import { type Reply, rpcError, toolError } from './answer.js';
import type { Call } from './call.js';
import type { Fault } from './faults.js';
import { callErrorText } from './refusals.js';
import { deadToken } from './tool-calls.js';
import { type AnswerWay, sendHtml, sendRpcError } from './transport.js';

/**
 * What each fault does. Before the work: `done` (the call is over), a reply in place of the work, or `go on`.
 */
export type Before = 'done' | 'go on' | Reply;

export async function strikeBefore(
  fault: Fault,
  response: ServerResponse,
  context: { readonly retryAfterSecs: number; readonly call: Call | null; readonly args: unknown },
): Promise<Before> {
  const { call } = context;
  const args = (typeof context.args === 'object' && context.args !== null ? context.args : {}) as Record<
    string,
    unknown
  >;
  switch (fault.kind) {
    case 'reset_before':
      response.destroy();
      return 'done';
    case 'hang':
      return 'done';
    case 'slow':
      await (call?.sleep(fault.ms) ?? new Promise((resolve) => setTimeout(resolve, fault.ms)));
      return 'go on';
    case 'http_401':
      sendRpcError(response, 401, -32001, 'Unauthorized: Apify API token is not valid.', {
        'www-authenticate': 'Bearer error="invalid_token"',
      });
      return 'done';
    case 'http_403':
      sendRpcError(response, 403, -32000, 'Forbidden');
      return 'done';
    case 'http_404':
      sendHtml(response, 404, 'Cannot POST /');
      return 'done';
    case 'session_lost':
      sendRpcError(response, 404, -32001, 'Session not found');
      return 'done';
    case 'http_429':
      sendRpcError(response, 429, -32000, 'You have exceeded the rate limit', retryHeader(fault, context));
      return 'done';
    case 'http_500':
      sendRpcError(response, 500, -32603, 'Internal server error');
      return 'done';
    case 'http_502':
      sendHtml(response, 502, 'Bad Gateway');
      return 'done';
    case 'http_503':
      sendHtml(response, 503, 'Service Unavailable', retryHeader(fault, context));
      return 'done';
    case 'http_413':
      sendHtml(response, 413, 'PayloadTooLargeError: request entity too large');
      return 'done';
    case 'http_302':
      response.writeHead(302, { location: 'http://elsewhere.invalid/' });
      response.end();
      return 'done';
    case 'accepted':
      response.writeHead(202);
      response.end();
      return 'done';
    case 'rpc_invalid_params':
      return rpcError(
        -32602,
        `MCP error -32602: Invalid arguments for tool "${call?.name ?? ''}".\nValidation errors: root: must have required property 'schemaVersion'.\nPlease check the tool's input schema using fetch-actor-details tool and ensure all required parameters are provided with correct types and values.`,
      );
    case 'rpc_internal':
      return rpcError(-32603, 'Internal error');
    case 'tool_error':
      return toolError(
        [callErrorText(call?.name ?? '', 'Request failed with status code 503', 503)],
        'FAILED',
      );
    case 'unauthorized':
      return call === null ? rpcError(-32603, 'Internal error') : deadToken(call, args);
    case 'run_not_found':
      return toolError([`Run with ID '${String(args.runId)}' not found.`]);
    default:
      return 'go on';
  }
}

function retryHeader(fault: Fault, { retryAfterSecs }: { readonly retryAfterSecs: number }): object {
  const wanted = fault.retryAfter ?? retryAfterSecs;
  if (wanted === 'none') return {};
  if (wanted === 'date') return { 'retry-after': new Date(Date.now() + retryAfterSecs * 1000).toUTCString() };
  return { 'retry-after': String(wanted) };
}

/** Spoils an answer whose work is done. True: the answer is dealt with, nothing more is to be sent. */
export function strikeAfter(
  fault: Fault,
  way: AnswerWay,
  id: string | number,
  json: string,
  hugeBytes: number,
): boolean {
  const { response } = way;
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
  switch (fault.kind) {
    case 'reset_after':
      response.destroy();
      return true;
    case 'drop_after':
      return true;
    case 'http_500_after':
      sendRpcError(response, 500, -32603, 'Internal server error');
      return true;
    case 'not_json':
      if (way.streams) way.answer('<html><body>Welcome to the captive portal</body></html>');
      else sendHtml(response, 200, 'Welcome to the captive portal');
      return true;
    case 'cut':
      way.cut(json, false);
      return true;
    case 'cut_end':
      way.cut(json, true);
      return true;
    case 'huge':
      way.answer(`${head}{"content":[{"type":"text","text":"${'x'.repeat(hugeBytes)}"}]}}`);
      return true;
    case 'wrong_shape':
      way.answer(
        `${head}{"content":"a string","structuredContent":{"runId":17,"status":null,"items":{"0":1},"storages":[]}}}`,
      );
      return true;
    case 'wrong_id':
      way.answer(json.replace(/^(\{"jsonrpc":"2.0","id":)(?:"[^"]*"|[^,]*),/, '$1"nobody-asked",'));
      return true;
    case 'task_result':
      way.answer(
        `${head}{"resultType":"task","task":{"taskId":"task-1","status":"working","createdAt":"2026-12-01T00:00:00.000Z","lastUpdatedAt":"2026-12-01T00:00:00.000Z","ttl":60000}}}`,
      );
      return true;
    default:
      return false;
  }
}
