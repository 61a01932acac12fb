import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

type Json = Record<string, unknown>;

/** One call of a tool, as it came in. */
export interface ToolCall {
  readonly tool: string;
  /** Which call of this tool it is, from 1. */
  readonly nth: number;
  readonly arguments: Json;
  readonly token: string;
}

/** What the front says instead of the server behind it. */
export type Instead =
  | { readonly http: number; readonly headers?: Record<string, string>; readonly body: string }
  | { readonly error: { readonly code: number; readonly message: string } }
  | { readonly result: Json };

/** A hostile server: the simulator does the work, and this stands before it, changes what it says, and quotes the token. */
export class Front {
  readonly tokens = new Set<string>();
  instead: (call: ToolCall) => Instead | null = () => null;
  rewrite: (tool: string, result: Json) => Json = (_tool, result) => result;
  private readonly counts = new Map<string, number>();

  private constructor(
    private readonly server: Server,
    private readonly sockets: Set<Socket>,
    private readonly behind: string,
  ) {}

  static async open(behind: string): Promise<Front> {
    const sockets = new Set<Socket>();
    const server = createServer();
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    });
    const front = new Front(server, sockets, behind);
    server.on('request', (request, response) => {
      front.handle(request, response).catch(() => response.destroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return front;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const token = (request.headers.authorization ?? '').replace(/^Bearer /, '');
    this.tokens.add(token);
    const message = body.length === 0 ? {} : (JSON.parse(body.toString()) as Json);
    const params = (message.params ?? {}) as { name?: string; arguments?: Json };
    const tool =
      message.method === 'tools/call' ? String(params.name) : String(message.method ?? request.method);
    const nth = (this.counts.get(tool) ?? 0) + 1;
    this.counts.set(tool, nth);
    const instead = this.instead({ tool, nth, arguments: params.arguments ?? {}, token });
    if (instead !== null) return say(response, message.id, instead);
    await this.pass(request, response, body, tool);
  }

  private async pass(
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer,
    tool: string,
  ): Promise<void> {
    const headers: Record<string, string> = {};
    for (const name of [
      'authorization',
      'content-type',
      'accept',
      'mcp-session-id',
      'mcp-protocol-version',
    ]) {
      const value = request.headers[name];
      if (typeof value === 'string') headers[name] = value;
    }
    const answer = await fetch(new URL(request.url ?? '/', this.behind), {
      method: request.method ?? 'GET',
      headers,
      ...(body.length > 0 ? { body } : {}),
    });
    const text = (await answer.text()).replace(/^(?:data: )?\{.*\}$/gm, (line) => {
      const prefix = line.startsWith('data: ') ? 'data: ' : '';
      const reply = JSON.parse(line.slice(prefix.length)) as Json;
      if (reply.result === undefined) return line;
      return prefix + JSON.stringify({ ...reply, result: this.rewrite(tool, reply.result as Json) });
    });
    const session = answer.headers.get('mcp-session-id');
    response.writeHead(answer.status, {
      'content-type': answer.headers.get('content-type') ?? 'application/json',
      ...(session === null ? {} : { 'mcp-session-id': session }),
    });
    response.end(text);
  }
}

function say(response: ServerResponse, id: unknown, instead: Instead): void {
  if ('http' in instead) {
    response.writeHead(instead.http, instead.headers ?? {});
    response.end(instead.body);
    return;
  }
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id, ...instead }));
}

/** A server of another origin, which nothing of ours may ever reach. */
export async function openThief(): Promise<{ url: string; stolen: string[]; close(): Promise<void> }> {
  const stolen: string[] = [];
  const server = createServer((request, response) => {
    stolen.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`);
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    stolen,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
