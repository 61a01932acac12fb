import type { CallContext } from './call-context.js';

/**
 * Which call an HTTP request of one session belongs to, found by its JSON-RPC id. AsyncLocalStorage would tell as well,
 * but from its first use on Node runs hooks at every promise of the process.
 *
 * It rests on the SDK handing a request to its transport before `Client.request` returns. Should an upgrade of the SDK
 * change that, calls have no context, and the tests of timeouts and aborts fail.
 */
export class CallContexts {
  readonly #byId = new Map<number, CallContext>();
  #sending: { readonly context: CallContext; id: number | null } | null = null;
  #session: CallContext | null = null;

  /** For one request, which `send` hands to the transport before it returns. */
  async ofRequest<T>(context: CallContext, send: () => Promise<T>): Promise<T> {
    const sending = { context, id: null as number | null };
    this.#sending = sending;
    const answered = send();
    this.#sending = null;
    try {
      return await answered;
    } finally {
      if (sending.id !== null) this.#byId.delete(sending.id);
    }
  }

  /** For what is sent by the session itself: the handshake, its end. Never while a call is in flight. */
  async ofSession<T>(context: CallContext, act: () => Promise<T>): Promise<T> {
    this.#session = context;
    try {
      return await act();
    } finally {
      this.#session = null;
    }
  }

  /** To be told of each message before it is sent. */
  sent(message: { readonly id?: unknown; readonly method?: unknown }): void {
    const sending = this.#sending;
    if (sending === null || sending.id !== null) return;
    if (typeof message.id !== 'number' || typeof message.method !== 'string') return;
    sending.id = message.id;
    sending.context.trace.requestId = message.id;
    this.#byId.set(message.id, sending.context);
  }

  /** @param requestId null for what is no request: a notification, the end of a session */
  of(requestId: number | null): CallContext | undefined {
    const own = requestId === null ? undefined : this.#byId.get(requestId);
    return own ?? this.#session ?? undefined;
  }
}
