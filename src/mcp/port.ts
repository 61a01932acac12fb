import type { RunOptions } from '../scrape/types.js';

/**
 * The one port to an MCP server (design B3). Every call returns a union and never throws; what to do about each
 * kind is decided in `src/run`. A profile (`profiles/apify.ts`) implements it over the SDK client.
 */
export interface ScrapeServer {
  readonly name: string;
  /** Lists the tools once a session, asserts the helpers, reads schemas and caps. `fresh` bypasses the cache. */
  describe(options?: { fresh?: boolean; signal?: AbortSignal }): Promise<CallResult<ServerDescription>>;
  /**
   * Starts a run. Never cancelled by a shutdown: the server would abort the run (apify-contract, Timeouts).
   * `onRunId` fires when a progress notification carries the run id before the answer does.
   */
  start(request: StartRequest): Promise<StartResult>;
  poll(
    runId: string,
    options?: { waitSecs?: number; signal?: AbortSignal; about?: CallAbout },
  ): Promise<CallResult<RunView>>;
  /** `offset` and `limit` are always sent. Past the end: no items. */
  readPage(request: PageRequest, signal?: AbortSignal): Promise<CallResult<PageView>>;
  readRecord(
    storeId: string,
    key: string,
    signal?: AbortSignal,
    about?: CallAbout,
  ): Promise<CallResult<RecordView>>;
  abort(runId: string, signal?: AbortSignal, about?: CallAbout): Promise<CallResult<RunView>>;
  /** The newest runs of the account, newest first, `limit` ≤ 10 a call; for reconciliation and the reaper. */
  listRuns(
    request: { offset: number; limit: number; status?: 'READY' | 'RUNNING' },
    signal?: AbortSignal,
  ): Promise<CallResult<RunListing>>;
  close(): Promise<void>;
}

/** Whom a call is for. It goes into the log beside the call and nowhere else. */
export interface CallAbout {
  readonly scrapeId?: string;
  readonly runId?: string;
}

export const operations = [
  'connect',
  'list_tools',
  'start',
  'poll',
  'read',
  'abort',
  'record',
  'reconcile',
] as const;
export type Operation = (typeof operations)[number];

/** How a call ended: the `result` label of `trawl_mcp_requests_total`, `ok` aside (design A8). */
export type FailureKind =
  | 'tool_error'
  /** A tool error that says the scrape's input or options are at fault; as a JSON-RPC error it is a `protocol_error`. */
  | 'invalid_input'
  | 'protocol_error'
  | 'rate_limited'
  | 'capacity'
  | 'http_error'
  | 'network_error'
  | 'timeout'
  | 'session_lost'
  | 'invalid_response';

/** Whose fault a refusal is (design B5). `none`: not a refusal but a fault on the way. */
export type RefusalClass = 'not_now' | 'server' | 'tool' | 'scrape' | 'unknown' | 'none';

/** The reason label of holds (design A8). */
export type HoldReason =
  | 'auth'
  | 'payment'
  | 'capacity'
  | 'rate_limit'
  | 'tools_missing'
  | 'unreachable'
  | 'brake'
  | 'paused';

export interface CallFailure {
  readonly kind: FailureKind;
  /** From outside: shortened to 500 characters, control characters removed, secrets redacted. */
  readonly message: string;
  /** JSON-RPC error code for `protocol_error`, else null. */
  readonly rpcCode: number | null;
  /** HTTP status when there was an answer with one, else null. */
  readonly httpStatus: number | null;
  /** From Retry-After (seconds or date), bounded to 10 minutes; else null. */
  readonly retryAfterMs: number | null;
  /** API error type (`concurrent-runs-limit-exceeded`) when one could be read, else null. */
  readonly apiErrorType: string | null;
  readonly refusal: RefusalClass;
  /** Set when `refusal` is `not_now`, `server` or `tool`. */
  readonly holdReason: HoldReason | null;
  /** True only for "the server does not know this run / dataset / record", never for a 401 that reads like it. */
  readonly notFound: boolean;
  /** The server provably did nothing (refused connection, HTTP 401/404/413/429, JSON-RPC validation error). */
  readonly noEffect: boolean;
  /** Set with `invalid_response` when the answer passed `limits.answerBytes`: a smaller page may fit. */
  readonly tooLarge?: true;
}

export type CallResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: CallFailure };

/** A failure without `noEffect` and without a refusal is ambiguous: a run may exist (design B4). */
export type StartResult = CallResult<RunView>;

export interface StartRequest {
  /** Canonical `user/name`. */
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly options: RunOptions;
  /** Run timeout sent to the server: the deadline plus a minute, or the producer's `timeout` when shorter. */
  readonly runTimeoutMs: number;
  /** How long to wait for the answer. */
  readonly timeoutMs: number;
  /**
   * Never sent after this moment (ms since the epoch). A process that was frozen while its start waited for a turn would
   * otherwise send it when another has found out that it had no effect, and made it again.
   */
  readonly sendBy?: number;
  /** Asked just before it is sent, after all waiting: its scrape may have been cancelled meanwhile. Must not throw. */
  readonly stillWanted?: () => Promise<boolean>;
  readonly onRunId?: (runId: string) => void;
  readonly about?: CallAbout;
}

export interface PageRequest {
  readonly datasetId: string;
  readonly offset: number;
  readonly limit: number;
  readonly fields: readonly string[];
  readonly about?: CallAbout;
}

export const finalStatuses = ['SUCCEEDED', 'FAILED', 'TIMED-OUT', 'ABORTED'] as const;
export type FinalStatus = (typeof finalStatuses)[number];

/** A run as the server last described it. */
export interface RunView {
  readonly runId: string;
  /** The Actor as `user/name`; absent when the answer did not say. */
  readonly actor?: string;
  /** As sent (READY, RUNNING, …); `UNKNOWN` when it could not be read. */
  readonly status: string;
  readonly final: boolean;
  readonly statusMessage: string | null;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
  readonly datasetId: string | null;
  /** null when the server could not read it; 0 may be lag. */
  readonly itemCount: number | null;
  readonly storeId: string | null;
  /** Keys of the default key-value store, INPUT left out; made fit to be shown, so not for asking with. */
  readonly recordKeys: readonly string[];
  /** Datasets beside the default one that hold items. */
  readonly otherDatasets: readonly {
    readonly name: string;
    readonly id: string;
    readonly itemCount: number;
  }[];
  readonly usageUsd: number | null;
}

export interface PageView {
  /** Each item as one line of JSON without line breaks, so that nobody has to serialise it again. */
  readonly lines: readonly string[];
  readonly totalItemCount: number | null;
  /** Bytes of the lines together, newlines included. */
  readonly bytes: number;
}

export type RecordView =
  | { readonly kind: 'json' | 'text' | 'binary'; readonly contentType: string; readonly body: Buffer }
  | { readonly kind: 'link'; readonly contentType: string; readonly uri: string };

export interface RunListing {
  readonly total: number | null;
  readonly runs: readonly {
    readonly runId: string;
    readonly actorId: string | null;
    readonly status: string;
    readonly startedAtMs: number | null;
    readonly origin: string | null;
    readonly storeId: string | null;
    readonly datasetId: string | null;
  }[];
}

export interface ServerDescription {
  readonly serverName: string;
  readonly serverVersion: string;
  readonly toolNames: readonly string[];
  /** Allowed Actors (canonical names) that can be started now, with their input schema when the server shows one. */
  readonly tools: ReadonlyMap<string, { readonly toolName: string; readonly inputSchema: object | null }>;
  /** Allowed Actors the server does not show. */
  readonly missing: readonly string[];
  /** How starts go: through `call-actor` (options apply) or the Actor's own tool. */
  readonly via: 'call-actor' | 'direct';
  /** Largest `waitSecs` of `get-actor-run`. */
  readonly waitSecsCap: number;
  /** Whether `get-actor-run-list` is there. */
  readonly canList: boolean;
}
