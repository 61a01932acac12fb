import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  StreamableHTTPClientTransport,
  StreamableHTTPError,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { type JSONRPCMessage, McpError } from '@modelcontextprotocol/sdk/types.js';
import type { JsonSchemaValidator, jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/types.js';
import { z } from 'zod';
import { blankTrace, type CallContext, CallEnded } from './call-context.js';
import { CallContexts } from './call-contexts.js';
import { createLeanFetch, type LeanFetch } from './lean-fetch.js';

export interface SessionOptions {
  readonly url: URL;
  readonly token: string;
  readonly answerBytes: number;
  readonly stallMs?: number;
  readonly clientVersion: string;
}

/** The SDK's own timer never fires: it would send `notifications/cancelled` and leave the socket open. Node's longest. */
const neverMs = 2 ** 31 - 1;

/** Any object: what is in it is read by the profile, which knows what to do with each oddity. */
const anyResult = z.looseObject({});

/**
 * Accepts everything. The SDK would report an answer that does not fit the server's own outputSchema as if the server
 * had refused the arguments (-32602), and would hide a tool's error behind it.
 */
const acceptAll: jsonSchemaValidator = {
  getValidator<T>(): JsonSchemaValidator<T> {
    return (input) => ({ valid: true, data: input as T, errorMessage: undefined });
  },
};

/**
 * One initialised MCP session over the SDK's client. Calls are plain `tools/call` and `tools/list` requests, not
 * `callTool`, which throws when a proxy strips structuredContent. A session does not heal: the pool replaces it.
 */
export class McpSession {
  /** Calls and errors so far; the pool recycles a session by them. */
  calls = 0;
  errors = 0;
  /** Set when no further call may use it. */
  retired = false;
  readonly #client: Client;
  readonly #transport: StreamableHTTPClientTransport;
  readonly #lean: LeanFetch;
  readonly #contexts = new CallContexts();
  readonly #inFlight = new Map<CallContext, (reason: CallEnded) => void>();
  #unanswered = 0;
  #progressToken = 0;
  #onIdle: (() => void) | null = null;

  private constructor(options: SessionOptions) {
    this.#client = new Client(
      { name: 'trawl', version: options.clientVersion },
      { capabilities: {}, jsonSchemaValidator: acceptAll },
    );
    this.#lean = createLeanFetch({
      answerBytes: options.answerBytes,
      ...(options.stallMs === undefined ? {} : { stallMs: options.stallMs }),
      contextOf: (requestId) => this.#contexts.of(requestId),
      onServerRequest: (message) => this.#transport.onmessage?.(message as JSONRPCMessage),
    });
    this.#transport = new StreamableHTTPClientTransport(options.url, {
      fetch: this.#lean.fetch,
      requestInit: { headers: { authorization: `Bearer ${options.token}` } },
    });
    const send = this.#transport.send.bind(this.#transport);
    this.#transport.send = (message, sendOptions) => {
      this.#contexts.sent(message as { id?: unknown; method?: unknown });
      return send(message, sendOptions);
    };
    // Every error also rejects the call it belongs to; without a handler the SDK would be silent as well.
    this.#client.onerror = () => undefined;
  }

  /** Connects and initialises. Throws what the SDK and the fetch throw. */
  static async open(options: SessionOptions, context: CallContext): Promise<McpSession> {
    const session = new McpSession(options);
    try {
      await session.#contexts.ofSession(context, () =>
        session.#client.connect(session.#transport, { timeout: neverMs }),
      );
      return session;
    } catch (error) {
      await session.close().catch(() => undefined);
      throw error;
    }
  }

  get server(): { name: string; version: string } {
    const { name = '', version = '' } = this.#client.getServerVersion() ?? {};
    return { name, version };
  }

  get sessionId(): string | undefined {
    return this.#transport.sessionId;
  }

  /**
   * One request. `end` aborts `context.signal`; the session calls it when it is closed over the call's head. Resolves
   * with the result object as sent; throws what the SDK and the fetch throw.
   */
  async call(
    method: string,
    params: Record<string, unknown>,
    context: CallContext,
    end: (reason: CallEnded) => void,
  ): Promise<Record<string, unknown>> {
    this.calls += 1;
    this.#inFlight.set(context, end);
    const withToken =
      context.onProgress === null
        ? params
        : { ...params, _meta: { progressToken: `call-${++this.#progressToken}` } };
    try {
      return await this.#contexts.ofRequest(context, () =>
        this.#client.request({ method, params: withToken } as Parameters<Client['request']>[0], anyResult, {
          timeout: neverMs,
        }),
      );
    } catch (error) {
      this.errors += 1;
      if (!(error instanceof McpError || error instanceof StreamableHTTPError)) this.#unanswered += 1;
      // However it surfaced in the SDK, the signal's reason is why the call ended.
      throw context.signal.aborted ? context.signal.reason : error;
    } finally {
      this.#inFlight.delete(context);
      if (this.#inFlight.size === 0) this.#onIdle?.();
    }
  }

  /** Resolves when no call is in flight. */
  idle(): Promise<void> {
    if (this.#inFlight.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /**
   * Ends what is in flight and tells the server that the session is over. It does not tell it after a call went
   * unanswered: the server may still be at work on that start, and would abort its run.
   */
  async close(): Promise<void> {
    this.retired = true;
    for (const end of this.#inFlight.values()) {
      this.#unanswered += 1;
      end(new CallEnded('closed', 'The connection was closed by Trawl.'));
    }
    if (this.#unanswered === 0 && this.#transport.sessionId !== undefined) await this.#terminate();
    await this.#client.close();
    await this.#lean.close();
  }

  async #terminate(): Promise<void> {
    const context: CallContext = {
      signal: AbortSignal.timeout(1_000),
      onProgress: null,
      trace: blankTrace(),
    };
    await this.#contexts.ofSession(context, () => this.#transport.terminateSession()).catch(() => undefined);
  }
}
