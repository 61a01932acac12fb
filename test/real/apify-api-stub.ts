import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import {
  datasetIdOf,
  itemAt,
  planOf,
  type RunState,
  type StubRecord,
  type StubRun,
  stateAt,
  storeIdOf,
} from './stub-runs.js';

export interface StubActor {
  readonly id: string;
  readonly username: string;
  readonly name: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** What the next matching requests get in place of an answer, or after it had its effect. */
export interface Fault {
  /** `POST /v2/actors/` and the like: how method and path begin, or a pattern. */
  readonly on: string | RegExp;
  /** Default 1. */
  readonly times?: number;
  readonly status?: number;
  readonly type?: string;
  readonly message?: string;
  /** Do the work, then reset the connection in place of the answer. */
  readonly resetAfterEffect?: boolean;
}

/** Everything that was asked, for a test to look at afterwards. */
export interface Ledger {
  readonly starts: {
    runId: string;
    actor: string;
    query: Record<string, string>;
    input: unknown;
    token: string;
  }[];
  readonly aborts: { runId: string; gracefully: boolean }[];
  readonly reads: { datasetId: string; offset: number; limit: number | null }[];
  readonly requests: { method: string; path: string; status: number }[];
}

/**
 * The part of the Apify REST API that the MCP server uses, over runs that the input steers (`RunPlan`). Every token is accepted
 * unless `tokens` is set.
 */
export class ApifyApiStub {
  readonly ledger: Ledger = { starts: [], aborts: [], reads: [], requests: [] };
  /** Datasets without metadata, as when the API cannot read it: run answers lose `itemCount`. */
  dropMetadata = false;
  tokens: ReadonlySet<string> | null = null;
  private readonly actors: StubActor[] = [];
  private readonly runs = new Map<string, StubRun>();
  private faults: { fault: Fault; left: number }[] = [];

  private constructor(private readonly server: Server) {}

  static async start(actors: readonly Omit<StubActor, 'id'>[] = [defaultActor]): Promise<ApifyApiStub> {
    const server = createServer();
    const stub = new ApifyApiStub(server);
    for (const actor of actors) stub.publish(actor);
    server.on('request', (request, response) => void stub.handle(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return stub;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** From here on the Actor exists. */
  publish(actor: Omit<StubActor, 'id'>): void {
    this.actors.push({ ...actor, id: newId('act') });
  }

  failNext(fault: Fault): void {
    this.faults.push({ fault, left: fault.times ?? 1 });
  }

  /** Withdraws the faults that were not used up, and says how many there were. */
  clearFaults(): number {
    const left = this.faults.reduce((sum, one) => sum + one.left, 0);
    this.faults = [];
    return left;
  }

  stateOf(runId: string): RunState | null {
    const run = this.runs.get(runId);
    return run === undefined ? null : stateAt(run, Date.now());
  }

  /** Runs that are not final now. */
  get active(): string[] {
    return [...this.runs.keys()].filter((id) => this.stateOf(id)?.finishedAtMs === null);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://stub');
    const method = request.method ?? 'GET';
    const call: Call = {
      method,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      body: await readBody(request),
      token: request.headers.authorization?.replace(/^Bearer /, '') ?? url.searchParams.get('token') ?? '',
      origin: String(request.headers['x-apify-request-origin'] ?? 'API'),
    };
    const fault = this.takeFault(`${method} ${call.path}`);
    let reply: Reply;
    if (fault && !fault.resetAfterEffect) {
      reply = failed(
        fault.status ?? 500,
        fault.type ?? 'internal-server-error',
        fault.message ?? 'Broken on purpose',
      );
    } else if (this.tokens !== null && !this.tokens.has(call.token)) {
      reply = failed(
        401,
        'user-or-token-not-found',
        'User was not found or authentication token is not valid',
      );
    } else {
      reply = await this.answer(call);
    }
    this.ledger.requests.push({ method, path: call.path, status: reply.status });
    if (fault?.resetAfterEffect) {
      request.socket.resetAndDestroy();
      return;
    }
    response.writeHead(reply.status, { 'content-type': reply.contentType, ...reply.headers });
    response.end(reply.body);
  }

  private takeFault(what: string): Fault | null {
    const found = this.faults.find(({ fault }) =>
      typeof fault.on === 'string' ? what.startsWith(fault.on) : fault.on.test(what),
    );
    if (found === undefined) return null;
    found.left -= 1;
    this.faults = this.faults.filter((one) => one.left > 0);
    return found.fault;
  }

  private answer(call: Call): Reply | Promise<Reply> {
    const [version, kind = '', id = '', ...rest] = call.path
      .split('/')
      .filter(Boolean)
      .map(decodeURIComponent);
    if (version !== 'v2') return notFound('page');
    switch (kind) {
      case 'actors':
      case 'acts':
        return this.actorCall(call, id, rest);
      case 'actor-builds': {
        const actor = this.actors.find((one) => buildIdOf(one) === id);
        return actor ? data(buildOf(actor)) : notFound('build');
      }
      case 'actor-runs':
        return id === '' ? this.listRuns(call) : this.runCall(call, id, rest);
      case 'datasets':
        return this.datasetCall(call, id, rest);
      case 'key-value-stores':
        return this.storeCall(call, id, rest);
      case 'logs':
        return { status: 200, contentType: 'text/plain', body: `Log of ${id}\n`, headers: {} };
      case 'users':
        return data({ id: 'stubUser', username: 'stub', plan: { tier: 'FREE' } });
      default:
        return notFound('page');
    }
  }

  private actorCall(call: Call, id: string, [part]: string[]): Reply {
    const actor = this.actors.find((one) => one.id === id || `${one.username}~${one.name}` === id);
    if (actor === undefined) return notFound('Actor');
    if (part === 'builds') return data(buildOf(actor));
    if (part === 'runs' && call.method === 'POST') return this.startRun(call, actor);
    return data(actorOf(actor));
  }

  private startRun(call: Call, actor: StubActor): Reply {
    let input: Record<string, unknown>;
    try {
      input = call.body.length === 0 ? {} : (JSON.parse(call.body.toString()) as Record<string, unknown>);
    } catch {
      return failed(400, 'invalid-input', 'Input is not valid JSON');
    }
    const { timeout, memory, ...query } = call.query;
    const run: StubRun = {
      id: newId('run'),
      actorId: actor.id,
      input,
      plan: planOf(input),
      startedAtMs: Date.now(),
      options: { ...query, timeoutSecs: Number(timeout ?? 3600), memoryMbytes: Number(memory ?? 1024) },
      origin: call.origin,
      abortedAtMs: null,
    };
    this.runs.set(run.id, run);
    this.ledger.starts.push({
      runId: run.id,
      actor: `${actor.username}/${actor.name}`,
      query: call.query,
      input,
      token: call.token,
    });
    return data(runOf(run, Date.now()), 201);
  }

  private async runCall(call: Call, id: string, [part]: string[]): Promise<Reply> {
    const run = this.runs.get(id);
    if (run === undefined) return notFound('Actor run');
    if (part === 'abort') {
      this.ledger.aborts.push({ runId: id, gracefully: call.query.gracefully === 'true' });
      run.abortedAtMs ??= Date.now();
      return data(runOf(run, Date.now()));
    }
    const untilMs = Date.now() + Math.min(Number(call.query.waitForFinish ?? 0), 60) * 1000;
    while (stateAt(run, Date.now()).finishedAtMs === null && Date.now() < untilMs) await delay(20);
    return data(runOf(run, Date.now()));
  }

  private listRuns(call: Call): Reply {
    const offset = Number(call.query.offset ?? 0);
    const limit = Number(call.query.limit ?? 1000);
    const desc = call.query.desc === '1' || call.query.desc === 'true';
    const now = Date.now();
    const all = [...this.runs.values()].map((run) => runOf(run, now));
    const matching = all.filter((run) => call.query.status === undefined || run.status === call.query.status);
    if (desc) matching.reverse();
    const items = matching.slice(offset, offset + limit);
    return data({ total: matching.length, offset, limit, desc, count: items.length, items });
  }

  private datasetCall(call: Call, id: string, [part]: string[]): Reply {
    const run = this.runs.get(id.replace(/^ds/, ''));
    if (run === undefined || id !== datasetIdOf(run.id)) return notFound('Dataset');
    const total = stateAt(run, Date.now()).visibleItems;
    if (part !== 'items') {
      if (this.dropMetadata) return failed(403, 'insufficient-permissions', 'No metadata');
      return data({
        id,
        itemCount: total,
        cleanItemCount: total,
        fields: ['idx', 'name', 'phone'],
        stats: {},
      });
    }
    const offset = Number(call.query.offset ?? 0);
    const limit = call.query.limit === undefined ? null : Number(call.query.limit);
    if (offset < 0) return failed(400, 'invalid-parameter', 'Offset must be a non-negative number');
    this.ledger.reads.push({ datasetId: id, offset, limit });
    const count = Math.max(0, Math.min(total - offset, limit ?? total));
    const items = Array.from({ length: count }, (_, index) =>
      pick(itemAt(run, offset + index), call.query.fields),
    );
    const headers = {
      'x-apify-pagination-total': String(total),
      'x-apify-pagination-offset': String(offset),
      'x-apify-pagination-limit': String(limit ?? 250_000),
      'x-apify-pagination-count': String(count),
    };
    return { ...json(items), headers };
  }

  private storeCall(call: Call, id: string, [part, key = '']: string[]): Reply {
    const run = this.runs.get(id.replace(/^kv/, ''));
    if (run === undefined || id !== storeIdOf(run.id)) return notFound('Store');
    const records: Record<string, StubRecord> = {
      INPUT: { contentType: 'application/json; charset=utf-8', body: JSON.stringify(run.input) },
      ...run.plan.records,
    };
    switch (part) {
      case undefined:
        return data({ id, name: null, stats: {} });
      case 'keys': {
        const items = Object.entries(records).map(([name, record]) => ({
          key: name,
          size: bytesOf(record).length,
        }));
        return data({
          items,
          count: items.length,
          limit: 1000,
          isTruncated: false,
          nextExclusiveStartKey: null,
        });
      }
      default: {
        const record = Object.hasOwn(records, key) ? records[key] : undefined;
        if (record === undefined) return failed(404, 'record-not-found', 'Record was not found');
        const body = call.method === 'HEAD' ? '' : bytesOf(record);
        return { status: 200, contentType: record.contentType, body, headers: {} };
      }
    }
  }
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly token: string;
  readonly origin: string;
}

interface Reply {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** Declares what steers a run and one required field; takes anything else as well, as most Actors do. */
export const defaultActor = {
  username: 'acme',
  name: 'yellowpages-scraper',
  inputSchema: {
    title: 'Yellow pages',
    type: 'object',
    schemaVersion: 1,
    properties: {
      location: { title: 'Location', type: 'string', description: 'Where to look', editor: 'textfield' },
      durationSecs: { title: 'Duration', type: 'number', description: 'How long it runs' },
      items: { title: 'Items', type: 'integer', description: 'How many it finds' },
      outcome: { title: 'Outcome', type: 'string', description: 'How it ends', editor: 'textfield' },
    },
    required: ['location'],
  },
} as const satisfies Omit<StubActor, 'id'>;

function newId(kind: string): string {
  return `${kind}${randomBytes(7).toString('hex')}`;
}

const buildIdOf = (actor: StubActor) => `build${actor.id}`;

function actorOf(actor: StubActor): object {
  return {
    id: actor.id,
    userId: 'stubUser',
    username: actor.username,
    name: actor.name,
    title: actor.name,
    description: `The ${actor.name}`,
    isPublic: true,
    stats: {},
    defaultRunOptions: { build: 'latest', timeoutSecs: 3600, memoryMbytes: 1024 },
    taggedBuilds: { latest: { buildId: buildIdOf(actor), buildNumber: '0.0.1' } },
  };
}

function buildOf(actor: StubActor): object {
  const { inputSchema: input, name } = actor;
  return {
    id: buildIdOf(actor),
    actId: actor.id,
    status: 'SUCCEEDED',
    buildNumber: '0.0.1',
    inputSchema: JSON.stringify(input),
    actorDefinition: { actorSpecification: 1, name, version: '0.0', input, readme: `# ${name}` },
  };
}

function runOf(run: StubRun, nowMs: number) {
  const state = stateAt(run, nowMs);
  const seconds = ((state.finishedAtMs ?? nowMs) - run.startedAtMs) / 1000;
  const cost = Math.round(seconds * 1000) / 1e6;
  return {
    id: run.id,
    actId: run.actorId,
    userId: 'stubUser',
    status: state.status,
    statusMessage: run.plan.statusMessage,
    startedAt: new Date(run.startedAtMs).toISOString(),
    finishedAt: state.finishedAtMs === null ? null : new Date(state.finishedAtMs).toISOString(),
    meta: { origin: run.origin },
    stats: { runTimeSecs: seconds, computeUnits: seconds / 3600, memMaxBytes: 123_456, restartCount: 0 },
    options: run.options,
    buildId: `build${run.actorId}`,
    buildNumber: '0.0.1',
    exitCode: state.finishedAtMs === null ? null : state.status === 'SUCCEEDED' ? 0 : 1,
    defaultKeyValueStoreId: storeIdOf(run.id),
    defaultDatasetId: datasetIdOf(run.id),
    defaultRequestQueueId: `rq${run.id}`,
    usageTotalUsd: cost,
    usageUsd: { ACTOR_COMPUTE_UNITS: cost },
  };
}

function pick(item: Record<string, unknown>, fields: string | undefined): Record<string, unknown> {
  if (!fields) return item;
  return Object.fromEntries(
    fields.split(',').flatMap((field) => (field in item ? [[field, item[field]]] : [])),
  );
}

function bytesOf(record: StubRecord): Buffer {
  if (record.bytes !== undefined) return Buffer.alloc(record.bytes);
  return Buffer.from(record.body, record.binary ? 'base64' : 'utf8');
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  switch (request.headers['content-encoding']) {
    case 'br':
      return brotliDecompressSync(body);
    case 'gzip':
      return gunzipSync(body);
    default:
      return body;
  }
}

function json(value: unknown, status = 200): Reply {
  return { status, contentType: 'application/json; charset=utf-8', body: JSON.stringify(value), headers: {} };
}

const data = (value: unknown, status = 200) => json({ data: value }, status);
const failed = (status: number, type: string, message: string) => json({ error: { type, message } }, status);
const notFound = (what: string) => failed(404, 'record-or-token-not-found', `${what} was not found`);
