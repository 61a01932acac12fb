import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpError } from '@modelcontextprotocol/sdk/types.js';
import { AnswerError, CallEnded, type CallTrace } from './call-context.js';
import { cleanMessage } from './message.js';
import type { CallFailure, FailureKind } from './port.js';

/** Errors before a byte of the request left: nothing can have happened on the server. */
const neverSent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_HAS_EXPIRED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

/** OpenSSL's words for a handshake that came to nothing; any other fault of TLS may come after the request. */
const handshakeFailed =
  /wrong version number|packet length too long|handshake failure|unsupported protocol|protocol version|unrecognized name|http request/i;

/** JSON-RPC: parse error, invalid request, no such method, invalid params. All are said before anything is done. */
const validationCodes = new Set([-32700, -32600, -32601, -32602]);

function isValidationCode(code: number | null): boolean {
  return code !== null && validationCodes.has(code);
}

/** A failure with every field at its quiet default. `message` is cleaned here, so that no caller can forget it. */
export function makeFailure(
  kind: FailureKind,
  message: unknown,
  secrets: readonly string[],
  more: Partial<Omit<CallFailure, 'kind' | 'message'>> = {},
): CallFailure {
  return {
    kind,
    message: cleanMessage(message, secrets),
    rpcCode: null,
    httpStatus: null,
    retryAfterMs: null,
    apiErrorType: null,
    refusal: 'none',
    holdReason: null,
    notFound: false,
    noEffect: false,
    ...more,
  };
}

export interface ClassifyOptions {
  readonly trace: Pick<CallTrace, 'status' | 'retryAfterMs'>;
  readonly secrets: readonly string[];
  /** Whether the call went out under a session id; without one a 404 is a wrong address. */
  readonly inSession: boolean;
}

/**
 * Whatever the SDK or the fetch threw, as a failure (mcp-client-facts, How things surface; design B4 for `noEffect`).
 * Texts that only Apify's servers use are read afterwards, by the profile. Never throws.
 */
export function classifyError(error: unknown, options: ClassifyOptions): CallFailure {
  const { trace, secrets } = options;
  const seen = { httpStatus: trace.status, retryAfterMs: trace.retryAfterMs };
  if (error instanceof CallEnded) {
    const kind = error.why === 'closed' ? 'network_error' : 'timeout';
    return makeFailure(kind, error.message, secrets, seen);
  }
  if (error instanceof AnswerError) {
    const more = error.tooLarge ? { ...seen, tooLarge: true as const } : seen;
    return makeFailure(error.kind, error.message, secrets, more);
  }
  if (error instanceof StreamableHTTPError) {
    return classifyStatus(error.code ?? trace.status ?? 0, error.message, options);
  }
  if (error instanceof McpError) return classifyRpc(error, options);
  const system = systemError(error);
  if (system !== null) {
    const { code } = system;
    const message = `${describe(error)} (${code})`;
    const sent = mayHaveLeft(system);
    return makeFailure('network_error', message, secrets, {
      ...seen,
      ...(sent ? {} : ({ noEffect: true, refusal: 'server', holdReason: 'unreachable' } as const)),
    });
  }
  return makeFailure(
    'invalid_response',
    `The answer is not what MCP allows: ${describe(error)}`,
    secrets,
    seen,
  );
}

function classifyStatus(status: number, raw: string, options: ClassifyOptions): CallFailure {
  const { trace, secrets, inSession } = options;
  const body = raw.replace(/^Streamable HTTP error: (Error POSTing to endpoint: )?/, '');
  const message = `HTTP ${status}: ${readable(body)}`;
  const seen = { httpStatus: status, retryAfterMs: trace.retryAfterMs };
  if (isSessionLost(status, body, inSession)) {
    return makeFailure('session_lost', message, secrets, { ...seen, noEffect: true });
  }
  switch (status) {
    case 401:
      return makeFailure('http_error', message, secrets, {
        ...seen,
        ...{ refusal: 'server', holdReason: 'auth', noEffect: true },
      });
    case 402:
      return makeFailure('http_error', message, secrets, {
        ...seen,
        refusal: 'server',
        holdReason: 'payment',
      });
    case 403:
      return makeFailure('http_error', message, secrets, { ...seen, refusal: 'server', holdReason: 'auth' });
    case 413:
      return makeFailure('http_error', message, secrets, { ...seen, refusal: 'scrape', noEffect: true });
    case 429:
      return makeFailure('rate_limited', message, secrets, {
        ...seen,
        ...{ refusal: 'not_now', holdReason: 'rate_limit', noEffect: true },
      });
    default: {
      // A wrong address, and a redirect that was not followed (the server has not acted on what it sent away).
      const wrongAddress = status === 404 || status === 405 || (status >= 300 && status < 400);
      const noEffect = wrongAddress || (status === 400 && isValidationCode(rpcCodeIn(body)));
      return makeFailure('http_error', message, secrets, {
        ...seen,
        noEffect,
        ...(wrongAddress ? ({ refusal: 'server', holdReason: 'unreachable' } as const) : {}),
      });
    }
  }
}

/** The spec's 404 for a session that is gone; some servers say 400 instead, in words. */
function isSessionLost(status: number, body: string, inSession: boolean): boolean {
  if (!inSession) return false;
  if (status === 404) return true;
  return (
    status === 400 && (rpcCodeIn(body) === -32001 || /session|not initialized/i.test(body.slice(0, 2_000)))
  );
}

function classifyRpc(error: McpError, options: ClassifyOptions): CallFailure {
  const { trace, secrets, inSession } = options;
  const message = error.message.replace(/^(MCP error -?\d+: )+/, '');
  const seen = { httpStatus: trace.status, retryAfterMs: trace.retryAfterMs };
  const code = Number.isSafeInteger(error.code) ? error.code : null;
  if (inSession && code === -32001 && /session/i.test(message)) {
    return makeFailure('session_lost', message, secrets, { ...seen, noEffect: true });
  }
  return makeFailure('protocol_error', message, secrets, {
    ...seen,
    rpcCode: code,
    noEffect: isValidationCode(code),
  });
}

function rpcCodeIn(body: string): number | null {
  const code = /"code"\s*:\s*(-?\d{1,6})\b/.exec(body.slice(0, 2_000))?.[1];
  return code === undefined ? null : Number(code);
}

/** An error page says what it has to say in a few words; a JSON error in its message. */
function readable(body: string): string {
  const message = /"message"\s*:\s*"((?:[^"\\]|\\.){1,2000})"/.exec(body.slice(0, 8_000))?.[1];
  const type = /"type"\s*:\s*"([a-z0-9-]{1,64})"/.exec(body.slice(0, 8_000))?.[1];
  if (message !== undefined) return type === undefined ? message : `${message} (API error type: ${type})`;
  const text = body
    .slice(0, 8_000)
    .replace(/<(style|script)\b[\s\S]*?<\/\1>/gi, ' ')
    .replace(/<[^>]{0,1000}>/g, ' ')
    .trim();
  return text === '' || text === 'null' ? 'no reason given' : text;
}

interface SystemError {
  readonly code: string;
  /** What failed, as Node names it: `connect`, `getaddrinfo`, `read`, `write`. */
  readonly syscall: unknown;
  readonly text: string;
}

/** A system, TLS or undici error, from the error or its causes; null when it is none of them. */
function systemError(error: unknown): SystemError | null {
  let current: unknown = error;
  for (let depth = 0; depth < 4 && typeof current === 'object' && current !== null; depth += 1) {
    const { code, syscall, cause, errors, message } = current as Record<string, unknown>;
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,63}$/.test(code)) {
      return { code, syscall, text: typeof message === 'string' ? message.slice(0, 2_000) : '' };
    }
    current = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  }
  return null;
}

/**
 * Whether the server may have got the request. A route that is lost while its answer is waited for fails the read with
 * the same EHOSTUNREACH or ENETUNREACH as a connect; TLS fails with EPROTO in the handshake and after it.
 */
function mayHaveLeft({ code, syscall, text }: SystemError): boolean {
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) return !handshakeFailed.test(text);
  if (syscall === 'read' || syscall === 'write') return true;
  return !neverSent.has(code) && !code.startsWith('ERR_TLS') && !code.startsWith('CERT_');
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : 'an unknown fault';
  if (error.name.endsWith('ZodError')) return 'it does not have the shape of a JSON-RPC message';
  return error.message || error.name;
}
