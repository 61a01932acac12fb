import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { Agent, type Dispatcher, request } from 'undici';
import { AnswerError, type CallContext } from './call-context.js';
import { EventReader } from './sse.js';

export interface LeanFetchOptions {
  /** Largest answer read, in bytes of the body. */
  readonly answerBytes: number;
  /** How long the body of a JSON answer or an error may stand still, in ms. */
  readonly stallMs?: number;
  /** The call that a request is of, by its JSON-RPC id; null: a notification, the end of a session. */
  readonly contextOf?: (requestId: number | null) => CallContext | undefined;
  /** Requests of the server on a call's stream (a ping), which the SDK answers. */
  readonly onServerRequest?: (message: Record<string, unknown>) => void;
}

export interface LeanFetch {
  readonly fetch: FetchLike;
  /** Ends all connections, also those with a call in flight. */
  close(): Promise<void>;
}

type Message = Record<string, unknown>;
type Body = Dispatcher.ResponseData['body'];

const errorBodyBytes = 65_536;
const drainMs = 1_000;
const maxRetryAfterMs = 600_000;

/**
 * The fetch for the SDK's Streamable HTTP transport, on `undici.request`: three times the calls a second of Node's own
 * fetch (mcp-client-facts, Cost of a call). It differs from a fetch where that helps a batch client:
 * - the call's own signal and trace come from `contextOf`; the transport's shared signal is not listened to;
 * - a POST's answer is read here, whichever form it has, and handed on as parsed JSON, so that an answer that is cut,
 *   too large, no JSON, or ends without a response fails now and not at the timeout;
 * - the standing GET is answered with 405, as a server without one would;
 * - no timeouts of its own but the stall of a JSON body: the caller's clock rules;
 * - redirects are left to the transport, which follows them within the origin alone; TLS is always verified.
 */
export function createLeanFetch(options: LeanFetchOptions): LeanFetch {
  const agent = new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    pipelining: 1,
    connect: { timeout: 10_000, rejectUnauthorized: true },
  });
  const reader = new AnswerReader(options);

  const fetch: FetchLike = async (url, init) => {
    const method = init?.method ?? 'GET';
    if (method === 'GET') return answer(405, {}, null, '');
    const body = typeof init?.body === 'string' ? init.body : undefined;
    const sent = body === undefined ? ({ kind: 'other', id: null } as const) : kindOf(body);
    const context = sent.kind === 'response' ? undefined : options.contextOf?.(sent.id);
    const response = await request(url, {
      method: method as Dispatcher.HttpMethod,
      headers: { ...headersOf(init?.headers), 'accept-encoding': 'identity' },
      body,
      dispatcher: agent,
      signal: context?.signal ?? AbortSignal.timeout(30_000),
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    response.body.on('error', () => undefined);
    return reader.read(response, sent.id, context);
  };
  return { fetch, close: () => agent.destroy() };
}

class AnswerReader {
  readonly #limit: number;
  readonly #stallMs: number;
  readonly #onServerRequest: (message: Message) => void;

  constructor(options: LeanFetchOptions) {
    this.#limit = options.answerBytes;
    this.#stallMs = options.stallMs ?? 30_000;
    this.#onServerRequest = options.onServerRequest ?? (() => undefined);
  }

  /** `id` is the request's id; null for a notification, whose answer has no body worth reading. */
  async read(
    response: Dispatcher.ResponseData,
    id: number | null,
    context: CallContext | undefined,
  ): Promise<Response> {
    const { statusCode: status, headers, body } = response;
    if (context) {
      context.trace.status = status;
      context.trace.retryAfterMs = parseRetryAfter(headers['retry-after']);
    }
    if (status >= 400) {
      const text = await readAll(body, errorBodyBytes, this.#stallMs, true).catch(() => '');
      return answer(status, headers, null, text);
    }
    if (id === null || status >= 300) {
      drain(body);
      return answer(status, headers, null, '');
    }
    const type = mediaType(headers['content-type']);
    const encoding = headers['content-encoding'];
    const refuse: (why: string) => never = (why) => {
      body.destroy();
      throw new AnswerError('invalid_response', why);
    };
    if (status !== 200) return refuse(`The server answered a request with HTTP ${status} and no response.`);
    if (encoding !== undefined && encoding !== 'identity') return refuse('The answer is encoded, unasked.');
    if (Number(headers['content-length']) > this.#limit) {
      body.destroy();
      throw tooLarge(this.#limit);
    }
    let found: Message;
    if (type === 'application/json') {
      const messages = parse(await readAll(body, this.#limit, this.#stallMs, false));
      found = this.#take(messages, id, context) ?? refuse('The answer holds no response to the request.');
    } else if (type === 'text/event-stream') {
      found = await this.#readEvents(body, id, context);
    } else {
      return refuse(`The answer is ${type || 'of no content type'}, neither JSON nor an event stream.`);
    }
    return answer(200, { ...headers, 'content-type': 'application/json' }, found, '');
  }

  /** Resolves with the response as soon as it is there; the rest of the stream is drained for a second at most. */
  #readEvents(body: Body, id: number, context: CallContext | undefined): Promise<Message> {
    return new Promise((resolve, reject) => {
      let bytes = 0;
      let settled = false;
      const settle = (end: () => void) => {
        if (settled) return;
        settled = true;
        end();
      };
      const fail = (error: unknown) =>
        settle(() => {
          body.destroy();
          reject(error);
        });
      const events = new EventReader((data) => {
        if (settled) return;
        const found = this.#take(parse(data), id, context);
        if (found) settle(() => resolve(found));
      });
      body.on('data', (chunk: Buffer) => {
        if (settled) return;
        bytes += chunk.length;
        if (bytes > this.#limit) return fail(tooLarge(this.#limit));
        try {
          events.push(chunk);
        } catch (error) {
          return fail(error);
        }
        if (settled) drain(body);
      });
      // Every stream ends and closes, also a good one: an error is made only when it is one.
      body.on('end', () => {
        if (!settled) fail(new AnswerError('invalid_response', 'The event stream ended without a response.'));
      });
      body.on('error', fail);
      body.on('close', () => {
        if (!settled) fail(new AnswerError('network_error', 'The event stream was cut.'));
      });
    });
  }

  /** Acts on what is not the response, and returns the response when it is among them. */
  #take(messages: unknown, id: number, context: CallContext | undefined): Message | null {
    let found: Message | null = null;
    for (const message of Array.isArray(messages) ? messages : [messages]) {
      if (typeof message !== 'object' || message === null) continue;
      const { method, id: messageId, params } = message as Message;
      if (typeof method === 'string') {
        if (messageId !== undefined) this.#onServerRequest(message as Message);
        else if (method === 'notifications/progress' && typeof params === 'object' && params !== null) {
          context?.onProgress?.(params as Message);
        }
      } else if (messageId === id) found = message as Message;
      // A server that could not read the request answers with an error and no id: it is about this request.
      else if (messageId === null && 'error' in message) found = { ...message, id };
    }
    return found;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AnswerError('invalid_response', `The answer is not JSON (${text.length} characters).`);
  }
}

function tooLarge(limit: number): AnswerError {
  return new AnswerError('invalid_response', `The answer is larger than ${limit} bytes.`, true);
}

/** Reads a body to its end. Past `limit` it stops: with what it has when `cut`, else with an error. */
function readAll(body: Body, limit: number, stallMs: number, cut: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = setTimeout(() => {
      body.destroy();
      reject(new AnswerError('network_error', `The answer stood still for ${stallMs} ms.`));
    }, stallMs);
    const finish = () => {
      clearTimeout(timer);
      const whole = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
      resolve(whole?.toString() ?? '');
    };
    body.on('data', (chunk: Buffer) => {
      timer.refresh();
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes <= limit) return;
      body.destroy();
      if (cut) return finish();
      clearTimeout(timer);
      reject(tooLarge(limit));
    });
    body.on('end', finish);
    const fail = (error: unknown) => {
      clearTimeout(timer);
      reject(error);
    };
    body.on('error', fail);
    body.on('close', () => {
      if (!body.readableEnded) fail(new AnswerError('network_error', 'The answer was cut.'));
    });
  });
}

/** Lets a body run out so that its connection can be used again; one that does not end is closed. */
function drain(body: Body): void {
  if (body.readableEnded || body.destroyed) return;
  const timer = setTimeout(() => body.destroy(), drainMs);
  timer.unref();
  body.on('close', () => clearTimeout(timer));
  body.resume();
}

type Sent =
  | { readonly kind: 'request'; readonly id: number }
  | { readonly kind: 'response' | 'other'; readonly id: null };

/**
 * What a body sends. The SDK writes a request's method first and its id last, so both are found without parsing an input
 * of 100 KB again. The id in a response is the server's own choice and says nothing about our calls.
 */
function kindOf(body: string): Sent {
  const last = /"id":(\d{1,15})\}$/.exec(body.slice(-32));
  if (last && body.startsWith('{"method":"')) return { kind: 'request', id: Number(last[1]) };
  const { id, method } = JSON.parse(body) as { id?: unknown; method?: unknown };
  if (method === undefined) return { kind: 'response', id: null };
  return typeof id === 'number' ? { kind: 'request', id } : { kind: 'other', id: null };
}

function headersOf(headers: unknown): Record<string, string> {
  return headers instanceof Headers
    ? Object.fromEntries(headers)
    : { ...(headers as Record<string, string>) };
}

function mediaType(header: string | string[] | undefined): string {
  const value = Array.isArray(header) ? header[0] : header;
  return (value ?? '').split(';', 1)[0]?.trim().toLowerCase().slice(0, 100) ?? '';
}

/** Milliseconds from a Retry-After header (seconds or a date), at most 10 minutes; null when it says nothing. */
function parseRetryAfter(header: string | string[] | undefined, now = Date.now()): number | null {
  const value = (Array.isArray(header) ? header[0] : header)?.trim() ?? '';
  const isDate = /^[A-Za-z]{3,9}, \d/.test(value);
  const ms = /^\d{1,12}(\.\d+)?$/.test(value)
    ? Number(value) * 1000
    : isDate
      ? Date.parse(value) - now
      : Number.NaN;
  if (Number.isNaN(ms)) return null;
  return Math.min(maxRetryAfterMs, Math.max(0, Math.round(ms)));
}

/**
 * The part of a Response the transport uses. A real one would copy the body through a web stream and parse it a second
 * time; that is where most of a fetch's cost lies.
 */
function answer(
  status: number,
  headers: Record<string, string | string[] | undefined>,
  json: unknown,
  text: string,
): Response {
  const get = (name: string) => {
    const value = headers[name.toLowerCase()];
    return Array.isArray(value) ? value.join(', ') : (value ?? null);
  };
  const partial = {
    status,
    ok: status >= 200 && status < 300,
    statusText: '',
    headers: { get },
    body: null,
    json: async () => json,
    text: async () => text,
  };
  return partial as unknown as Response;
}
