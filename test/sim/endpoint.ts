import type { IncomingMessage, ServerResponse } from 'node:http';
import { messageJson, type Reply, rpcError, toolError } from './answer.js';
import { Call } from './call.js';
import { type Before, strikeAfter, strikeBefore } from './fault-effects.js';
import type { Fault } from './faults.js';
import { refusalTexts } from './refusals.js';
import { RequestRate } from './request-rate.js';
import { initializeResult } from './server-info.js';
import type { Session, Sessions } from './sessions.js';
import { faultsOf, readStart, startKey, steeringOf } from './start-run.js';
import { type SimOperation, type SteeredFault, SteeringError } from './steering.js';
import { callTool, operationOf } from './tool-calls.js';
import { definitionOf, toolsetOf, visibleTools } from './toolset.js';
import { AnswerWay, BodyTooLarge, hardBodyLimit, readBody, sendHtml, sendRpcError } from './transport.js';
import type { World } from './world.js';

interface Message {
  readonly jsonrpc?: unknown;
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
}

/** The MCP endpoint: sessions, JSON-RPC, and faults on the way. Streamable HTTP as protocol 2025-11-25 has it. */
export class Endpoint {
  readonly world: World;
  readonly sessions: Sessions;
  /** HTTP requests by operation, and answers by status. */
  readonly requests = new Map<SimOperation | 'notification', number>();
  readonly statuses = new Map<number, number>();
  readonly #rate = new RequestRate();

  constructor(world: World, sessions: Sessions) {
    this.world = world;
    this.sessions = sessions;
  }

  async handle(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    response.once('close', () => {
      const status = response.headersSent ? response.statusCode : 0;
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    });
    switch (request.method) {
      case 'POST':
        return this.#post(request, response, url);
      case 'GET':
        return this.#get(request, response);
      case 'DELETE':
        return this.#delete(request, response);
      default:
        return sendRpcError(response, 405, -32000, 'Method not allowed.', { allow: 'GET, POST, DELETE' });
    }
  }

  #get(request: IncomingMessage, response: ServerResponse): void {
    if (!this.world.conditions.standingStream) {
      sendRpcError(response, 405, -32000, 'Method not allowed.', { allow: 'POST, DELETE' });
      return;
    }
    if (this.#sessionOf(request, response) === null) return;
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    response.flushHeaders();
  }

  #delete(request: IncomingMessage, response: ServerResponse): void {
    const session = this.#sessionOf(request, response);
    if (session === null) return;
    this.sessions.drop(session.id);
    response.writeHead(200);
    response.end();
  }

  async #post(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const { conditions } = this.world;
    let body: string;
    try {
      body = await readBody(request, conditions.bodyLimit ?? hardBodyLimit);
    } catch (error) {
      if (!(error instanceof BodyTooLarge)) return void response.destroy();
      return sendHtml(response, 413, 'PayloadTooLargeError: request entity too large', {
        connection: 'close',
      });
    }
    const tokenIsDead = this.#tokenIsDead(request);
    if (tokenIsDead && (conditions.authMode === 'http_401' || request.headers.authorization === undefined)) {
      return sendRpcError(response, 401, -32001, 'Unauthorized: Apify API token is missing or not valid.', {
        'www-authenticate': 'Bearer error="invalid_token", error_description="Apify API token missing"',
      });
    }
    const accept = request.headers.accept ?? '';
    if (!accept.includes('application/json') || !accept.includes('text/event-stream')) {
      const text = 'Not Acceptable: Client must accept both application/json and text/event-stream';
      return sendRpcError(response, 406, -32000, text);
    }
    const message = parseMessage(body);
    if (message === null) return sendRpcError(response, 400, -32700, 'Parse error: Invalid JSON');
    if (message.method === undefined || message.jsonrpc !== '2.0') {
      return sendRpcError(
        response,
        400,
        -32600,
        'Invalid Request: expected one JSON-RPC request or notification',
      );
    }
    if (message.method === 'initialize') return this.#initialize(message, request, response, url);
    const session = this.#sessionOf(request, response);
    if (session === null) return;
    if (message.id === undefined) return this.#notification(message, session, response);
    await this.#request(message, message.id, session, response, tokenIsDead);
  }

  #tokenIsDead(request: IncomingMessage): boolean {
    const given = /^Bearer\s+(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
    if (given === undefined) return true;
    const { tokens } = this.world.conditions;
    return tokens !== null && !tokens.includes(given);
  }

  /** The session of a request; null after the 400 or 404 was sent (apify-contract, Errors). */
  #sessionOf(request: IncomingMessage, response: ServerResponse): Session | null {
    const id = request.headers['mcp-session-id'];
    if (typeof id !== 'string') {
      sendRpcError(response, 400, -32000, 'Bad Request: Mcp-Session-Id header is required');
      return null;
    }
    const session = this.sessions.get(id);
    if (session === undefined) sendRpcError(response, 404, -32001, 'Session not found');
    return session ?? null;
  }

  async #initialize(
    message: Message,
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
  ): Promise<void> {
    const id = message.id ?? 0;
    const fault = this.#pick('connect', null, [], '');
    if (request.headers['mcp-session-id'] !== undefined) {
      return sendRpcError(response, 404, -32001, 'Session not found');
    }
    if (this.#limited(response)) return;
    if (fault !== null) {
      const context = { retryAfterSecs: this.world.conditions.retryAfterSecs, call: null, args: null };
      const before = await strikeBefore(fault, response, context);
      if (before === 'done') return;
      if (before !== 'go on') return this.#send(new AnswerWay(response, 'json', ''), id, before, fault);
    }
    const session = this.sessions.open(toolsetOf(url.searchParams));
    this.world.note('connect', { session: session.id, call: id }, {});
    const json = initializeResult(message.params?.protocolVersion);
    const way = new AnswerWay(response, this.world.conditions.answers, session.id);
    this.#send(way, id, { kind: 'result', json }, fault);
  }

  #notification(message: Message, session: Session, response: ServerResponse): void {
    this.#count('notification');
    response.writeHead(202);
    response.end();
    if (message.method !== 'notifications/cancelled') return;
    const id = message.params?.requestId;
    if (typeof id === 'string' || typeof id === 'number') session.calls.get(id)?.cancel();
  }

  async #request(
    message: Message,
    id: string | number,
    session: Session,
    response: ServerResponse,
    tokenIsDead: boolean,
  ): Promise<void> {
    const { world } = this;
    const params = message.params ?? {};
    const way = new AnswerWay(response, world.conditions.answers, session.id);
    const isCall = message.method === 'tools/call';
    const call = new Call({
      world,
      owner: session,
      id,
      name: isCall ? String(params.name) : '',
      progressToken: progressTokenOf(params),
      notify: (json) => way.notify(json),
    });
    call.op = isCall ? operationOf(call) : message.method === 'tools/list' ? 'list_tools' : 'other';
    if (this.#limited(response)) return;
    const args = params.arguments;
    const fault = this.#faultFor(call, args);
    call.fault = fault;
    if (fault !== null) world.note('fault', call, { reason: fault.kind, key: call.op });
    session.calls.set(id, call);
    // A client that went away gets no answer, but its start goes on (2025 protocol).
    response.once('close', () => {
      session.calls.delete(id);
      call.end();
    });
    await this.#latency(call);
    let before: Before = 'go on';
    if (fault !== null) {
      const context = { retryAfterSecs: world.conditions.retryAfterSecs, call, args };
      before = await strikeBefore(fault, response, context);
    }
    if (fault?.kind === 'session_lost') this.sessions.drop(session.id);
    if (before === 'done') return;
    if (call.cancelled) return way.nothing();
    const reply =
      before === 'go on' ? await this.#work(call, message.method ?? '', args, tokenIsDead) : before;
    this.#send(way, id, reply, fault, call);
  }

  async #work(call: Call, method: string, args: unknown, tokenIsDead: boolean): Promise<Reply> {
    switch (method) {
      case 'tools/call':
        return callTool(call, args, tokenIsDead);
      case 'tools/list':
        this.world.note('list_tools', call, {});
        return { kind: 'result', json: this.#toolsJson(call.owner, tokenIsDead) };
      case 'ping':
        return { kind: 'result', json: '{}' };
      case 'logging/setLevel':
        return { kind: 'result', json: '{}' };
      default:
        return rpcError(-32601, 'Method not found');
    }
  }

  #toolsJson(session: Session, tokenIsDead: boolean): string {
    const { conditions } = this.world;
    const names = visibleTools(session.toolset, conditions, tokenIsDead);
    return JSON.stringify({
      tools: names.map((name) => definitionOf(name, session.toolset.get(name) ?? null, conditions)),
    });
  }

  #send(way: AnswerWay, id: string | number, given: Reply, fault: Fault | null, call?: Call): void {
    const { strip, hugeBytes } = this.world.conditions;
    let reply = given;
    let stripped = strip;
    if (fault?.kind === 'run_id_lost' && reply.kind === 'answer' && call !== undefined) {
      const actor = call.owner.toolset.get(call.name)?.name ?? '';
      const via = call.name === 'call-actor' ? 'call-actor' : 'direct';
      reply = toolError(refusalTexts('server_error', { via, actor, toolName: call.name, bare: true }));
    }
    if (fault?.kind === 'no_structured') stripped = 'structured';
    if (fault?.kind === 'sentence_only') stripped = 'json';
    const json = messageJson(id, reply, stripped);
    if (json === null) way.nothing();
    else if (way.response.destroyed) return;
    else if (fault === null || !strikeAfter(fault, way, id, json, hugeBytes)) way.answer(json);
  }

  /** The faults that hit this call: those its job asked for, then the rules. */
  #faultFor(call: Call, args: unknown): Fault | null {
    const given = (typeof args === 'object' && args !== null ? args : {}) as Record<string, unknown>;
    if (call.op === 'start') {
      const start = readStart(call, given);
      if (start === null) return this.#pick(call.op, null, [], '');
      let steered: readonly SteeredFault[] = [];
      try {
        steered = faultsOf(steeringOf(call, start));
      } catch (error) {
        // The start itself reports it.
        if (!(error instanceof SteeringError)) throw error;
      }
      return this.#pick(call.op, start.actor.name, steered, steered.length > 0 ? startKey(start) : '');
    }
    const runId = runIdIn(given);
    const run = runId === null ? undefined : this.world.runs.get(runId);
    return this.#pick(call.op, run?.actor.name ?? null, run?.faults ?? [], runId ?? '');
  }

  #pick(
    op: SimOperation,
    actor: string | null,
    steered: readonly SteeredFault[],
    steeredKey: string,
  ): Fault | null {
    this.#count(op);
    return this.world.faults.pick({ op, actor, steered, steeredKey });
  }

  #count(op: SimOperation | 'notification'): void {
    this.requests.set(op, (this.requests.get(op) ?? 0) + 1);
  }

  async #latency(call: Call): Promise<void> {
    const [low, high] = this.world.conditions.latencyMs;
    if (high > 0) await call.sleep(low + Math.random() * Math.max(0, high - low));
  }

  #limited(response: ServerResponse): boolean {
    const { requestsPerSecond, retryAfterSecs } = this.world.conditions;
    if (requestsPerSecond === null || this.#rate.take(requestsPerSecond)) return false;
    const headers = { 'retry-after': String(retryAfterSecs) };
    sendRpcError(response, 429, -32000, 'You have exceeded the rate limit', headers);
    return true;
  }
}

function parseMessage(body: string): Message | null {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Message) : null;
  } catch {
    return null;
  }
}

function progressTokenOf(params: Record<string, unknown>): string | number | null {
  const meta = params._meta as { progressToken?: unknown } | null | undefined;
  const token = meta?.progressToken;
  return typeof token === 'string' || typeof token === 'number' ? token : null;
}

function runIdIn(args: Record<string, unknown>): string | null {
  if (typeof args.runId === 'string') return args.runId;
  const storage = args.datasetId ?? args.keyValueStoreId;
  return typeof storage === 'string' ? storage.slice(2) : null;
}
