import type { Logger } from 'pino';
import type { ServerConfig } from '../../config.js';
import type { RequestLimiter } from '../limiter.js';
import type {
  CallAbout,
  CallFailure,
  CallResult,
  Operation,
  PageRequest,
  PageView,
  RecordView,
  RunListing,
  RunView,
  ScrapeServer,
  ServerDescription,
  StartRequest,
  StartResult,
} from '../port.js';
import { type ObservedCall, type SeenCall, SessionPool } from '../session-pool.js';
import { Catalogue, refuse } from './apify-catalogue.js';
import { type RefusalContext, refineFailure, type StartWay } from './apify-refusals.js';
import {
  readAnswer,
  readPage,
  readRecord,
  readRun,
  readRunList,
  runIdOfProgress,
  type ToolResult,
} from './apify-replies.js';
import { endpointOf, helper } from './apify-tools.js';

export interface ApifyServerOptions {
  readonly server: ServerConfig;
  /** Largest answer read, in bytes (`limits.answerBytes`). */
  readonly answerBytes: number;
  readonly limiter: RequestLimiter;
  /** Called once for each JSON-RPC request that got its verdict. */
  readonly observe: (call: ObservedCall, seen: SeenCall) => void;
  readonly log: Pick<Logger, 'debug' | 'warn'>;
  /** Trawl's version, as the server sees it. */
  readonly version?: string;
  /** Bounds for tests of what happens at them. */
  readonly tuning?: Partial<Tuning>;
}

export interface Tuning {
  /** Time for the answer of a poll (its `waitSecs` are added), an abort, a list, in ms. */
  readonly callTimeoutMs: number;
  /** Time for a page or a record; a page may be tens of megabytes. */
  readonly readTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly stallMs: number;
  readonly closeGraceMs: number;
  readonly concurrency: number;
  readonly maxErrors: number;
  readonly maxCalls: number;
  /** How long a list of tools is good for; one that lacks an allowed Actor is looked at again sooner. */
  readonly toolsFreshMs: number;
  readonly missingFreshMs: number;
}

const defaultTuning: Tuning = {
  callTimeoutMs: 60_000,
  readTimeoutMs: 120_000,
  connectTimeoutMs: 30_000,
  stallMs: 30_000,
  closeGraceMs: 5_000,
  concurrency: 256,
  maxErrors: 1_000,
  maxCalls: 10_000,
  toolsFreshMs: 600_000,
  missingFreshMs: 30_000,
};

/** The `apify` profile: an Apify MCP server behind the port. Connects when first used. */
export function createApifyServer(options: ApifyServerOptions): ScrapeServer {
  return new ApifyServer(options);
}

interface ToolCall<T> {
  readonly operation: Operation;
  readonly name: string;
  readonly arguments: Record<string, unknown>;
  readonly timeoutMs: number;
  readonly sendBy?: number | undefined;
  readonly stillWanted?: (() => Promise<boolean>) | undefined;
  /** null: the shape is wrong. May throw on data no reader can hold. */
  readonly read: (result: ToolResult) => T | null;
  readonly signal?: AbortSignal | undefined;
  readonly about?: CallAbout | undefined;
  readonly way?: StartWay;
  readonly asked?: string;
  readonly tool?: string;
  readonly onProgress?: ((params: Record<string, unknown>) => void) | undefined;
}

class ApifyServer implements ScrapeServer {
  readonly name: string;
  readonly #server: ServerConfig;
  readonly #tuning: Tuning;
  readonly #pool: SessionPool;
  readonly #secrets: readonly string[];
  readonly #log: Pick<Logger, 'debug' | 'warn'>;
  readonly #catalogue: Catalogue;

  constructor(options: ApifyServerOptions) {
    const { server, answerBytes, limiter, observe, log } = options;
    this.name = server.name;
    this.#server = server;
    this.#tuning = { ...defaultTuning, ...options.tuning };
    this.#secrets = [server.token];
    this.#log = log;
    this.#pool = new SessionPool({
      url: endpointOf(server),
      token: server.token,
      clientVersion: options.version ?? '0',
      answerBytes,
      limiter,
      observe,
      log,
      ...this.#tuning,
    });
    this.#catalogue = new Catalogue({
      server,
      pool: this.#pool,
      log,
      timeoutMs: this.#tuning.callTimeoutMs,
      ...this.#tuning,
    });
  }

  async describe(
    options: { fresh?: boolean; signal?: AbortSignal } = {},
  ): Promise<CallResult<ServerDescription>> {
    return this.#catalogue.describe(options);
  }

  async start(request: StartRequest): Promise<StartResult> {
    const config = Object.hasOwn(this.#server.tools, request.tool)
      ? this.#server.tools[request.tool]
      : undefined;
    if (!config) return refuse('scrape', `The tool ${request.tool} is not on the list of allowed tools.`);
    const described = await this.describe();
    if (!described.ok) return { ok: false, failure: { ...described.failure, noEffect: true } };
    const { via, tools } = described.value;
    const tool = tools.get(request.tool);
    if (!tool) {
      const message = `The server does not show the Actor ${request.tool}: check its name, and that the token may use it.`;
      return refuse('tool', message);
    }
    if (via === 'direct' && Object.keys(request.options).length > 0) {
      const message = `Run options (${Object.keys(request.options).join(', ')}) need call-actor; an Actor's own tool ignores them.`;
      return refuse('scrape', message);
    }
    const result = await this.#call<RunView>({
      operation: 'start',
      ...(via === 'direct'
        ? { name: tool.toolName, arguments: { ...request.input, waitSecs: 0 } }
        : { name: helper.callActor, arguments: callActorArguments(request, config.memory) }),
      timeoutMs: request.timeoutMs,
      sendBy: request.sendBy,
      stillWanted: request.stillWanted,
      way: via,
      tool: request.tool,
      about: request.about,
      read: (answer) => readRun(answer, null, this.#secrets),
      onProgress: this.#runIdListener(request),
    });
    return result.ok ? result : { ok: false, failure: await this.#secondLook(result.failure) };
  }

  async poll(
    runId: string,
    options: { waitSecs?: number; signal?: AbortSignal; about?: CallAbout } = {},
  ): Promise<CallResult<RunView>> {
    const wanted = Math.max(0, Math.floor(options.waitSecs ?? 0));
    const waitSecs = Math.min(Number.isFinite(wanted) ? wanted : 0, this.#catalogue.waitSecsCap);
    const result = await this.#pollOnce(runId, waitSecs, options);
    if (result.ok || !this.#learnsCap(result.failure, waitSecs)) return result;
    return this.#pollOnce(runId, this.#catalogue.waitSecsCap, options);
  }

  async readPage(request: PageRequest, signal?: AbortSignal): Promise<CallResult<PageView>> {
    const { datasetId, offset, limit, fields } = request;
    return this.#call<PageView>({
      operation: 'read',
      name: helper.getItems,
      arguments: { datasetId, offset, limit, ...(fields.length > 0 ? { fields: fields.join(',') } : {}) },
      timeoutMs: this.#tuning.readTimeoutMs,
      asked: datasetId,
      signal,
      about: request.about,
      read: (answer) => readPage(answer, request),
    });
  }

  async readRecord(
    storeId: string,
    key: string,
    signal?: AbortSignal,
    about?: CallAbout,
  ): Promise<CallResult<RecordView>> {
    return this.#call<RecordView>({
      operation: 'record',
      name: helper.getRecord,
      arguments: { keyValueStoreId: storeId, recordKey: key },
      timeoutMs: this.#tuning.readTimeoutMs,
      asked: key,
      signal,
      about,
      read: (answer) => readRecord(answer, this.#secrets),
    });
  }

  async abort(runId: string, signal?: AbortSignal, about?: CallAbout): Promise<CallResult<RunView>> {
    return this.#call<RunView>({
      operation: 'abort',
      name: helper.abortRun,
      arguments: { runId },
      timeoutMs: this.#tuning.callTimeoutMs,
      asked: runId,
      signal,
      about: { ...about, runId },
      read: (answer) => readRun(answer, runId, this.#secrets),
    });
  }

  async listRuns(
    request: { offset: number; limit: number; status?: 'READY' | 'RUNNING' },
    signal?: AbortSignal,
  ): Promise<CallResult<RunListing>> {
    const limit = Math.min(10, Math.max(1, Math.floor(request.limit)));
    const only = request.status === undefined ? {} : { status: request.status };
    return this.#call<RunListing>({
      operation: 'reconcile',
      name: helper.listRuns,
      arguments: { offset: request.offset, limit, desc: true, ...only },
      timeoutMs: this.#tuning.callTimeoutMs,
      signal,
      read: (answer) => readRunList(answer, request),
    });
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  async #pollOnce(
    runId: string,
    waitSecs: number,
    { signal, about }: { signal?: AbortSignal; about?: CallAbout },
  ): Promise<CallResult<RunView>> {
    return this.#call<RunView>({
      operation: 'poll',
      name: helper.getRun,
      arguments: { runId, waitSecs },
      timeoutMs: this.#tuning.callTimeoutMs + waitSecs * 1_000,
      asked: runId,
      signal,
      about: { ...about, runId },
      read: (answer) => readRun(answer, runId, this.#secrets),
    });
  }

  async #call<T>(call: ToolCall<T>): Promise<CallResult<T>> {
    const context: RefusalContext = {
      operation: call.operation,
      way: call.way ?? null,
      secrets: this.#secrets,
      ...(call.asked === undefined ? {} : { asked: call.asked }),
    };
    const result = await this.#pool.call<T>({
      operation: call.operation,
      method: 'tools/call',
      params: { name: call.name, arguments: call.arguments },
      timeoutMs: call.timeoutMs,
      sendBy: call.sendBy,
      stillWanted: call.stillWanted,
      signal: call.signal,
      tool: call.tool,
      about: call.about,
      onProgress: call.onProgress,
      read: (answer) => readAnswer(answer, call, context),
      refine: (failure) => refineFailure(failure, context),
    });
    if (!result.ok && result.failure.holdReason === 'tools_missing') this.#catalogue.forget();
    return result;
  }

  /**
   * With a dead token a start can read "Actor not found", as if the Actor were at fault. A look at the tools tells:
   * when that fails too, the server is what has to be held.
   */
  async #secondLook(failure: CallFailure): Promise<CallFailure> {
    if (failure.refusal !== 'tool' || failure.holdReason !== 'tools_missing') return failure;
    const look = await this.describe({ fresh: true });
    if (look.ok || look.failure.refusal !== 'server') return failure;
    const { refusal, holdReason } = look.failure;
    return { ...failure, refusal, holdReason, message: look.failure.message };
  }

  /** A refusal about waitSecs lowers the cap, once for all later calls. True: the call is worth repeating. */
  #learnsCap(failure: CallFailure, sent: number): boolean {
    if (sent === 0 || failure.rpcCode !== -32602 || !/waitSecs/i.test(failure.message)) return false;
    const named = Number(
      /waitSecs:? must be (?:<=|less than or equal to) (\d{1,4})\b/i.exec(failure.message)?.[1],
    );
    this.#catalogue.waitSecsCap = named < sent ? named : 0;
    this.#log.warn(
      { server: this.name, waitSecsCap: this.#catalogue.waitSecsCap },
      'the server lowered its cap on waitSecs',
    );
    return true;
  }

  #runIdListener({ onRunId }: StartRequest): ((params: Record<string, unknown>) => void) | undefined {
    if (!onRunId) return undefined;
    let told = false;
    return (params) => {
      const runId = runIdOfProgress(params);
      if (runId === null || told) return;
      told = true;
      try {
        onRunId(runId);
      } catch (error) {
        this.#log.warn({ err: error, server: this.name }, 'the listener for an early run id failed');
      }
    };
  }
}

/** Arguments of call-actor. `waitSecs: 0` is the way whose answer always carries the run id (design B4). */
function callActorArguments(request: StartRequest, usualMemory: number | null): Record<string, unknown> {
  const { maxItems, maxTotalChargeUsd, build } = request.options;
  const memory = request.options.memory ?? usualMemory ?? undefined;
  return {
    actor: request.tool,
    input: request.input,
    waitSecs: 0,
    callOptions: {
      timeout: Math.max(1, Math.ceil(request.runTimeoutMs / 1_000)),
      ...(memory === undefined ? {} : { memory }),
      ...(maxItems === undefined ? {} : { maxItems }),
      ...(maxTotalChargeUsd === undefined ? {} : { maxTotalChargeUsd }),
      ...(build === undefined ? {} : { build }),
    },
  };
}
