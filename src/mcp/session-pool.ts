import type { Logger } from 'pino';
import { blankTrace, type CallContext, CallEnded, type CallTrace } from './call-context.js';
import { CallClock, Places, raced } from './call-turn.js';
import { classifyError, makeFailure } from './classify.js';
import { McpSession, type SessionOptions } from './client.js';
import { LimiterFull, type RequestLimiter } from './limiter.js';
import type { CallAbout, CallFailure, CallResult, FailureKind, Operation } from './port.js';

/** One JSON-RPC request that was made, for the metrics of design A8. */
export interface ObservedCall {
  readonly operation: Operation;
  readonly result: 'ok' | FailureKind;
  readonly rpcCode: number | null;
  readonly seconds: number;
  readonly tool?: string;
}

/** What a log says of such a request beside that. Texts are shortened, cleaned and redacted. */
export interface SeenCall {
  readonly about: CallAbout;
  /** JSON-RPC id, unique within its session; null: it was never sent. */
  readonly requestId: number | null;
  /** The how-manieth session of this process with the server. Its id is a credential and never shown. */
  readonly session: number;
  readonly httpStatus: number | null;
  readonly message: string | null;
}

export interface PoolCall<T> {
  readonly operation: Operation;
  readonly method: 'tools/call' | 'tools/list';
  readonly params: Record<string, unknown>;
  /** Time for the answer, counted from the sending. The wait for a turn before it has a bound of the same length. */
  readonly timeoutMs: number;
  /** Not sent after this moment (ms since the epoch): this process was frozen while the call waited for its turn. */
  readonly sendBy?: number | undefined;
  /** Asked just before the sending; false: it is not sent. Must not throw. */
  readonly stillWanted?: (() => Promise<boolean>) | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((params: Record<string, unknown>) => void) | undefined;
  /** For metrics: the Actor of a start. */
  readonly tool?: string | undefined;
  readonly about?: CallAbout | undefined;
  /** Reads the result; a refusal or a wrong shape inside it is observed as what it is. */
  readonly read: (result: Record<string, unknown>) => CallResult<T>;
  /** Reads the profile's own words in what the server refused before there was a result. */
  readonly refine?: (failure: CallFailure) => CallFailure;
}

export interface PoolOptions extends SessionOptions {
  readonly limiter: RequestLimiter;
  readonly observe: (call: ObservedCall, seen: SeenCall) => void;
  readonly log: Pick<Logger, 'debug' | 'warn'>;
  /** Calls in flight at once; long polls need one place each. */
  readonly concurrency?: number;
  readonly connectTimeoutMs?: number;
  /** A session is replaced after this many; the SDK keeps a handler for each failed send for ever. */
  readonly maxErrors?: number;
  readonly maxCalls?: number;
  /** How long closing waits for calls in flight. */
  readonly closeGraceMs?: number;
}

type Opened =
  | { readonly ok: true; readonly session: McpSession }
  | { readonly ok: false; readonly failure: CallFailure };

const penaltyWithoutRetryAfterMs = 1_000;

/**
 * Calls over one MCP session that is replaced whenever it must be: connected when first needed, by one caller for
 * all; rebuilt after the server forgot it (HTTP 404 or 400); recycled after so many errors or calls. Retired sessions
 * finish what they have in flight.
 *
 * A call whose session was gone provably had no effect, so it is made once more on a new session; starts too. Nothing
 * else is retried here.
 */
export class SessionPool {
  /** Counts sessions opened: what was read in one (the tools) is read again in the next. */
  generation = 0;
  readonly #options: PoolOptions;
  readonly #secrets: readonly string[];
  readonly #places: Places;
  readonly #retired = new Set<Promise<void>>();
  #session: McpSession | null = null;
  #opening: Promise<Opened> | null = null;
  #closed = false;
  /** Resolves when sessions may no longer wait for their calls. */
  readonly #patience: Promise<void>;
  #endPatience: () => void = () => undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#secrets = [options.token];
    this.#places = new Places(options.concurrency ?? 256);
    this.#patience = new Promise((resolve) => {
      this.#endPatience = resolve;
    });
  }

  /** The server's name and version as of the present session. */
  get server(): { name: string; version: string } {
    return this.#session?.server ?? { name: '', version: '' };
  }

  async call<T>(call: PoolCall<T>): Promise<CallResult<T>> {
    const first = await this.#attempt(call);
    if (first.ok || first.failure.kind !== 'session_lost' || this.#closed) return first;
    return this.#attempt(call);
  }

  /** The next call opens a new session; calls in flight end in the present one. */
  renew(): void {
    if (this.#session) this.#retire(this.#session);
  }

  /** Bounded: waits `closeGraceMs` for calls in flight, then ends them. Later calls fail without an effect. */
  async close(): Promise<void> {
    this.#closed = true;
    const opening = await this.#opening;
    if (opening?.ok) this.#retire(opening.session);
    if (this.#session) this.#retire(this.#session);
    const timer = setTimeout(this.#endPatience, this.#options.closeGraceMs ?? 5_000);
    await Promise.all(this.#retired);
    clearTimeout(timer);
  }

  async #attempt<T>(call: PoolCall<T>): Promise<CallResult<T>> {
    const waitMs = call.sendBy === undefined ? call.timeoutMs : call.sendBy - Date.now();
    const clock = new CallClock(call.timeoutMs, call.signal, waitMs);
    let connected = false;
    let placed = false;
    try {
      for (;;) {
        const opened = this.#session
          ? ({ ok: true, session: this.#session } as const)
          : await raced(this.#open(), clock.signal);
        if (!opened.ok) return opened;
        connected = true;
        if (!placed) {
          await this.#takeTurn(call.operation, clock.signal);
          placed = true;
        }
        if (call.stillWanted !== undefined && !(await call.stillWanted())) {
          throw new CallEnded('aborted', 'It was no longer wanted when its turn came.');
        }
        if (call.sendBy !== undefined && Date.now() > call.sendBy) {
          throw new CallEnded('aborted', 'Its turn came too late.');
        }
        if (!opened.session.retired) return await this.#send(opened.session, call, clock);
      }
    } catch (error) {
      return { ok: false, failure: this.#neverSent(error, connected) };
    } finally {
      clock.stop();
      if (placed) this.#places.release();
    }
  }

  /** A place and a token. Who had to wait for a place takes another token, so that tokens do not gather in the queue. */
  async #takeTurn(operation: Operation, signal: AbortSignal): Promise<void> {
    await this.#options.limiter.acquire(operation, signal);
    if (this.#places.tryTake()) return;
    await this.#places.take(signal);
    try {
      await this.#options.limiter.acquire(operation, signal);
    } catch (error) {
      this.#places.release();
      throw error;
    }
  }

  async #send<T>(session: McpSession, call: PoolCall<T>, clock: CallClock): Promise<CallResult<T>> {
    clock.restart();
    const context: CallContext = {
      signal: clock.signal,
      onProgress: call.onProgress ?? null,
      trace: blankTrace(),
    };
    const began = performance.now();
    try {
      const result = await session.call(call.method, call.params, context, clock.end);
      const read = call.read(result);
      this.#observed(call, read.ok ? null : read.failure, began, context.trace);
      return read;
    } catch (error) {
      const seen = classifyError(error, {
        trace: context.trace,
        secrets: this.#secrets,
        inSession: session.sessionId !== undefined,
      });
      const failure = call.refine?.(seen) ?? seen;
      // A call its own caller gave up says nothing about the server.
      if (!(error instanceof CallEnded && error.why === 'aborted'))
        this.#observed(call, failure, began, context.trace);
      if (failure.kind === 'session_lost') this.#retire(session);
      return { ok: false, failure };
    } finally {
      if (session.errors >= (this.#options.maxErrors ?? 1_000)) this.#retire(session);
      if (session.calls >= (this.#options.maxCalls ?? 10_000)) this.#retire(session);
    }
  }

  #observed(
    call: Pick<PoolCall<unknown>, 'operation' | 'tool' | 'about'>,
    failure: CallFailure | null,
    began: number,
    trace: CallTrace,
  ): void {
    if (
      failure?.kind === 'rate_limited' ||
      (failure?.kind === 'http_error' && failure.retryAfterMs !== null)
    ) {
      this.#options.limiter.penalise(failure.retryAfterMs ?? penaltyWithoutRetryAfterMs);
    }
    const observed: ObservedCall = {
      operation: call.operation,
      result: failure?.kind ?? 'ok',
      rpcCode: failure?.rpcCode ?? null,
      seconds: (performance.now() - began) / 1000,
      ...(call.tool === undefined ? {} : { tool: call.tool }),
    };
    this.#options.observe(observed, {
      about: call.about ?? {},
      requestId: trace.requestId,
      session: this.generation,
      httpStatus: failure?.httpStatus ?? trace.status,
      message: failure?.message ?? null,
    });
  }

  async #open(): Promise<Opened> {
    if (this.#closed) {
      const failure = makeFailure('network_error', 'The connection was closed by Trawl.', [], {
        noEffect: true,
      });
      return { ok: false, failure };
    }
    if (this.#session) return { ok: true, session: this.#session };
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  async #connect(): Promise<Opened> {
    const { limiter, log, connectTimeoutMs = 30_000 } = this.#options;
    const waiting = new CallClock(connectTimeoutMs);
    try {
      await limiter.acquire('connect', waiting.signal);
    } catch (error) {
      return { ok: false, failure: this.#neverSent(error) };
    } finally {
      waiting.stop();
    }
    const clock = new CallClock(connectTimeoutMs);
    const context: CallContext = {
      signal: clock.signal,
      onProgress: null,
      trace: blankTrace(),
    };
    const began = performance.now();
    try {
      const session = await McpSession.open(this.#options, context);
      this.#observed({ operation: 'connect' }, null, began, context.trace);
      if (this.#closed) this.#retire(session);
      else this.#session = session;
      this.generation += 1;
      log.debug({ generation: this.generation, server: session.server }, 'opened an MCP session');
      return { ok: true, session };
    } catch (error) {
      const seen = classifyError(error, { trace: context.trace, secrets: this.#secrets, inSession: false });
      this.#observed({ operation: 'connect' }, seen, began, context.trace);
      // Whatever went wrong here, the call itself was never sent.
      return { ok: false, failure: { ...seen, noEffect: true } };
    } finally {
      clock.stop();
    }
  }

  #retire(session: McpSession): void {
    if (this.#session === session) this.#session = null;
    if (session.retired) return;
    session.retired = true;
    const closing = Promise.race([session.idle(), this.#patience])
      .then(() => session.close())
      .catch((error: unknown) => this.#options.log.warn({ err: error }, 'closing an MCP session failed'))
      .finally(() => this.#retired.delete(closing));
    this.#retired.add(closing);
  }

  /** Why a call did not leave: the wait for its turn was too long, or its caller gave it up. */
  #neverSent(error: unknown, connected = true): CallFailure {
    if (error instanceof LimiterFull) {
      return makeFailure('rate_limited', error.message, this.#secrets, {
        ...{ noEffect: true, refusal: 'not_now', holdReason: 'rate_limit' },
      });
    }
    if (error instanceof CallEnded && error.why === 'timeout' && connected) {
      return makeFailure('rate_limited', 'No turn came up under the request rate in time.', this.#secrets, {
        ...{ noEffect: true, refusal: 'not_now', holdReason: 'rate_limit' },
      });
    }
    const trace = blankTrace();
    return { ...classifyError(error, { trace, secrets: this.#secrets, inSession: false }), noEffect: true };
  }
}
