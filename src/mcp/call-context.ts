/**
 * What travels beside a call through the SDK, which has no parameter for it: the abort into the fetch; status and
 * Retry-After out of it; progress as it arrives. One per call, never shared (mcp-client-facts, Hazards).
 */
export interface CallContext {
  /** Aborting it ends the HTTP request. Nothing tells the server: see `CallEnded`. */
  readonly signal: AbortSignal;
  /** Params of each `notifications/progress` on this call's stream, as they arrive. */
  readonly onProgress: ((params: Record<string, unknown>) => void) | null;
  readonly trace: CallTrace;
}

/** What the fetch saw of the HTTP exchange. */
export interface CallTrace {
  status: number | null;
  retryAfterMs: number | null;
  /** JSON-RPC id the call went out under. */
  requestId: number | null;
}

export const blankTrace = (): CallTrace => ({ status: null, retryAfterMs: null, requestId: null });

/**
 * The reason a call's signal is aborted with. Neither a timeout nor an abort sends `notifications/cancelled`: on a
 * start the server would abort the run it just made, which is paid for and which reconciliation will find
 * (apify-contract, Timeouts). For the other calls the closed connection says enough.
 */
export class CallEnded extends Error {
  constructor(
    readonly why: 'timeout' | 'aborted' | 'closed',
    message: string,
  ) {
    super(message);
    this.name = 'CallEnded';
  }
}

/** An answer that is not what MCP allows, found while reading it. */
export class AnswerError extends Error {
  constructor(
    readonly kind: 'invalid_response' | 'network_error',
    message: string,
    /** The answer passed the size bound: a smaller request may fit. */
    readonly tooLarge = false,
  ) {
    super(message);
    this.name = 'AnswerError';
  }
}
