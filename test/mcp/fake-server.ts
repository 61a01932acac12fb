import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export type Json = Record<string, unknown>;

export interface Seen {
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  readonly url: string;
  readonly message: Json | null;
}

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly message: { id: number; method: string; params: Json };
  /** Sends a JSON-RPC result. */
  result(value: Json): void;
  error(code: number, message: string): void;
  http(status: number, headers?: Record<string, string>, body?: string): void;
}

export interface FakeServer {
  readonly url: string;
  readonly seen: Seen[];
  /** Requests of this JSON-RPC method so far. */
  count(method: string): number;
  /** Names called with tools/call so far. */
  calls(): string[];
  /** What becomes of tools/call; replaced at will. */
  onCall: (exchange: Exchange) => void | Promise<void>;
  onInitialize: (exchange: Exchange) => void;
  onList: (exchange: Exchange) => void;
  /** The session id handed out; other ids are answered with 404. */
  session: string;
  sse: boolean;
  close(): Promise<void>;
}

/** The replies of a recording, in order, without the envelope. */
export function recorded(name: string): { request: Json; replies: Json[] }[] {
  const file = new URL(`../wire/${name}.json`, import.meta.url);
  const { messages } = JSON.parse(readFileSync(file, 'utf8')) as {
    messages: { direction: string; message: Json }[];
  };
  const exchanges: { request: Json; replies: Json[] }[] = [];
  for (const { direction, message } of messages) {
    if (direction === 'request') exchanges.push({ request: message, replies: [] });
    else exchanges.at(-1)?.replies.push(message);
  }
  return exchanges;
}

/** The result object of a recording's exchange. */
export function resultOf(name: string, exchange = 0): Json {
  const reply = recorded(name)[exchange]?.replies.at(-1);
  if (!reply?.result) throw new Error(`${name} has no result`);
  return structuredClone(reply.result as Json);
}

/** Tools as recorded, with `call-actor` and `get-actor-run-list` beside them. */
export function recordedTools(): Json[] {
  const { tools } = resultOf('initialize-and-tools-list', 1) as { tools: Json[] };
  const plain = { inputSchema: { type: 'object' } };
  return [
    ...structuredClone(tools),
    { name: 'call-actor', ...plain },
    { name: 'get-actor-run-list', ...plain },
  ];
}

/** A small MCP server over real HTTP whose every answer a test can replace. */
export async function startFake(): Promise<FakeServer> {
  const sockets = new Set<Socket>();
  const seen: Seen[] = [];
  const server: Server = createServer((request, response) => void handle(request, response));
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  const fake: FakeServer = {
    url: `http://127.0.0.1:${port}/`,
    seen,
    count: (method) => seen.filter(({ message }) => message?.method === method).length,
    calls: () =>
      seen.flatMap(({ message }) =>
        message?.method === 'tools/call' ? [String((message.params as Json).name)] : [],
      ),
    onCall: (exchange) => exchange.result({ content: [] }),
    onInitialize: (exchange) => exchange.result(resultOf('initialize-and-tools-list')),
    onList: (exchange) => exchange.result({ tools: recordedTools() }),
    session: 'session-1',
    sse: false,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const message = text === '' ? null : (JSON.parse(text) as Json);
    seen.push({ method: request.method ?? '', headers: request.headers, url: request.url ?? '', message });
    if (request.method === 'DELETE') return void response.writeHead(200).end();
    if (request.method !== 'POST' || message === null) return void response.writeHead(405).end();
    if (message.id === undefined) return void response.writeHead(202).end();
    const exchange = exchangeOf(request, response, message as unknown as Exchange['message']);
    if (message.method === 'initialize') {
      response.setHeader('mcp-session-id', fake.session);
      return fake.onInitialize(exchange);
    }
    if (request.headers['mcp-session-id'] !== fake.session) {
      const body = { jsonrpc: '2.0', error: { code: -32001, message: 'Session not found' }, id: null };
      return exchange.http(404, { 'content-type': 'application/json' }, JSON.stringify(body));
    }
    if (message.method === 'tools/list') return fake.onList(exchange);
    await fake.onCall(exchange);
  }

  function exchangeOf(
    request: IncomingMessage,
    response: ServerResponse,
    message: Exchange['message'],
  ): Exchange {
    const send = (body: Json) => {
      const json = JSON.stringify({ jsonrpc: '2.0', id: message.id, ...body });
      const type = fake.sse ? 'text/event-stream' : 'application/json';
      response.writeHead(200, { 'content-type': type });
      response.end(fake.sse ? `event: message\ndata: ${json}\n\n` : json);
    };
    return {
      request,
      response,
      message,
      result: (result) => send({ result }),
      error: (code, text) => send({ error: { code, message: text } }),
      http: (status, headers = {}, body = '') => void response.writeHead(status, headers).end(body),
    };
  }
  return fake;
}
