import type { HoldReason } from '../mcp/port.js';

/** What a label may hold is fixed here, so that nothing from outside can grow the number of series (design A8). */
export const results = [
  'ok',
  'tool_error',
  'invalid_input',
  'protocol_error',
  'rate_limited',
  'capacity',
  'http_error',
  'network_error',
  'timeout',
  'session_lost',
  'invalid_response',
] as const;
export type CallResultLabel = (typeof results)[number];

/** Results every server has a series of from the start: `rate()` needs a zero to see the first error after. */
export const initialResults: readonly CallResultLabel[] = ['ok', 'protocol_error', 'tool_error'];

export const holdReasons = [
  'auth',
  'payment',
  'capacity',
  'rate_limit',
  'tools_missing',
  'unreachable',
  'brake',
  'paused',
] as const satisfies readonly HoldReason[];

/** JSON-RPC 2.0, the MCP specification and its SDK. */
const rpcCodes = new Set([-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32042]);

export const rpcCodeLabel = (code: number | null): string =>
  code !== null && rpcCodes.has(code) ? String(code) : 'other';

const queueStates = new Set([
  'waiting',
  'prioritized',
  'active',
  'delayed',
  'waiting-children',
  'completed',
  'failed',
]);
const stages = ['start', 'poll', 'pages', 'abort'];

/** Turns names into label values; what is not known becomes `other`. */
export class Labels {
  readonly #tools: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #queues: ReadonlySet<string>;

  constructor(servers: Readonly<Record<string, { readonly tools: readonly string[] }>>) {
    const entries = Object.entries(servers);
    this.#tools = new Map(entries.map(([name, { tools }]) => [name, new Set(tools)]));
    this.#queues = new Set([
      'scrape',
      ...entries.flatMap(([name]) => stages.map((stage) => `${stage}-${name}`)),
    ]);
  }

  server = (name: string): string => (this.#tools.has(name) ? name : 'other');
  tool = (server: string, name: string): string => (this.#tools.get(server)?.has(name) ? name : 'other');
  queue = (name: string): string => (this.#queues.has(name) ? name : 'other');
  state = (name: string): string => (queueStates.has(name) ? name : 'other');

  /** Each configured server with its tools. */
  *pairs(): Generator<{ server: string; tools: readonly string[] }> {
    for (const [server, tools] of this.#tools) yield { server, tools: [...tools] };
  }
}

/** A name of our own code (a sink, a source, a reason): a short word, else `other`. */
export const word = (value: string): string => (/^[a-z][a-z0-9_]{0,31}$/.test(value) ? value : 'other');
