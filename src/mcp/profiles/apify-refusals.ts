import { makeFailure } from '../classify.js';
import type { CallFailure, FailureKind, HoldReason, Operation, RefusalClass } from '../port.js';

/** One sign of a refusal: API error types and sentences that mean the same (design B5). */
interface Sign {
  readonly types: readonly string[];
  readonly text: RegExp;
  readonly refusal: Exclude<RefusalClass, 'none' | 'unknown'>;
  readonly holdReason: HoldReason | null;
  readonly kind?: FailureKind;
  /**
   * Said only by a start that made no run. The others may come from the read a direct tool makes after its start, with
   * a run going: there they prove nothing.
   */
  readonly onlyFromStart: boolean;
}

/**
 * Read from the top, first match wins; types before sentences. Patterns are never anchored: the same words arrive
 * behind `MCP error -32602: ` (once or twice), `Failed to call Actor '…': ` or `Error calling tool "…": `.
 */
const signs: readonly Sign[] = [
  {
    types: ['invalid-input', 'max-total-charge-usd-below-minimum', 'invalid-value', 'build-not-found'],
    text: /input validation failed for actor|input is required for actor|input is not valid|invalid arguments for tool|ensure the input is correct|(max-?total-?charge-?usd|total charge).{0,80}(below|minimum|too low|at least)|(unknown build|build .{0,80}was not found)/i,
    refusal: 'scrape',
    holdReason: null,
    onlyFromStart: true,
  },
  {
    types: [
      'concurrent-runs-limit-exceeded',
      'memory-limit-exceeded',
      'actor-memory-limit-exceeded',
      'cannot-start-actor-runs',
    ],
    text: /exceed(s|ed)? (the|your|its)? ?(total |account )?memory (limit|quota)|memory (limit|quota) (was |is |has been |of .{0,60})?exceeded|account limit for concurrent|(limit|number|maximum) (for|of|on) concurrent.{0,20} runs|concurrent.{0,20} runs? (limit|quota)|cannot start (any )?more actor runs/i,
    refusal: 'not_now',
    holdReason: 'capacity',
    kind: 'capacity',
    onlyFromStart: true,
  },
  {
    types: ['rate-limit-exceeded', 'too-many-requests'],
    text: /rate limit (was |has been )?(exceeded|reached)|exceeded the rate limit|too many requests|status code 429/i,
    refusal: 'not_now',
    holdReason: 'rate_limit',
    kind: 'rate_limited',
    onlyFromStart: false,
  },
  {
    types: ['actor-is-not-rented'],
    text: /(must|need to|have to|has to be) (be )?rent(ed)?\b|\bnot rented\b|\brent (a|the|this) (paid )?actor|free trial (of .{0,80})?has expired/i,
    refusal: 'tool',
    holdReason: 'payment',
    onlyFromStart: true,
  },
  {
    types: ['full-permission-actor-not-approved'],
    text: /approve here:|permissions? approval|(requires|needs) (full permission|your approval)|full[- ]permission.{0,40}(approv|grant)/i,
    refusal: 'tool',
    holdReason: 'auth',
    onlyFromStart: true,
  },
  {
    types: ['actor-disabled', 'public-actor-disabled', 'actor-not-found'],
    text: /\bactor (is|was|has been) (temporarily )?(disabled|removed|deleted|under maintenance)|\bactor '[^']{1,200}' was not found|\bactor "[^"]{1,200}" was not found|\bactor (was )?not found\b|actor not found or definition/i,
    refusal: 'tool',
    holdReason: 'tools_missing',
    onlyFromStart: true,
  },
  {
    types: [
      'user-or-token-not-found',
      'token-not-valid',
      'token-not-provided',
      'invalid-token',
      'unauthorized',
    ],
    text: /user was not found or authentication token|authentication (token is not valid|failed)|\btoken (is )?(not valid|invalid|expired)|invalid (api |access )?token|\bunauthorized\b/i,
    refusal: 'server',
    holdReason: 'auth',
    onlyFromStart: false,
  },
  {
    types: [
      'not-enough-usage-to-run-paid-actor',
      'platform-feature-disabled',
      'monthly-usage-hard-limit-exceeded',
      'payment-required',
    ],
    text: /payment required|not enough usage|exceed your remaining usage|usage (hard )?limit (was |has been )?(exceeded|reached)|(exceed(ed)?|reached) (your|the) (monthly|usage|plan)|insufficient (funds|credits?|balance)|feature is disabled|(overdue|unpaid) (invoice|payment)/i,
    refusal: 'server',
    holdReason: 'payment',
    onlyFromStart: true,
  },
  {
    types: ['insufficient-permissions'],
    text: /insufficient permissions|token may lack access/i,
    refusal: 'tool',
    holdReason: 'auth',
    onlyFromStart: false,
  },
];

const knownTypes = new Map(signs.flatMap((sign) => sign.types.map((type) => [type, sign] as const)));

/** The API failing, or the way to it: a start behind such words may have made a run all the same. */
const faultOnTheWay =
  /internal (server )?error|internal-(server-)?error|socket hang up|\bE(CONN|PIPE|TIMEDOUT|AI_)|network|timed? ?out|timeout of|status code 5\d\d|temporarily unavailable|bad gateway|service unavailable|unexpected|actor run was not found|failed to get actor run/i;

/** How a start is made: what an error in its answer proves depends on it. */
export type StartWay = 'call-actor' | 'direct';

export interface RefusalContext {
  readonly operation: Operation;
  /** Set for starts. */
  readonly way: StartWay | null;
  readonly secrets: readonly string[];
  /** The id the call asked about, for `notFound`. */
  readonly asked?: string;
}

/** The words to judge: without the schema the server repeats after bad input, which may hold any word at all. */
function wordsOf(texts: readonly string[]): string {
  return texts
    .filter((text) => !/^\s*(input schema:|```json|\{)/i.test(text))
    .join('\n')
    .replace(/```json[\s\S]{0,100000}?(```|$)/g, '')
    .slice(0, 4_000);
}

/** A result with `isError: true` as a failure: whose fault it is, and whether a start behind it may have made a run. */
export function classifyToolError(texts: readonly string[], context: RefusalContext): CallFailure {
  const words = wordsOf(texts) || texts.join('\n').slice(0, 4_000) || 'The tool failed and gave no reason.';
  const { sign, type } = findSign(words);
  const base = makeFailure(sign?.kind ?? 'tool_error', words, context.secrets, {
    apiErrorType: type,
    notFound: saysNotFound(words, context),
  });
  const failure = withRefusal(base, sign, words, context, true);
  return failure.refusal === 'scrape' ? { ...failure, kind: 'invalid_input' } : failure;
}

/** A JSON-RPC or HTTP failure of a call, with Apify's own words taken into account. */
export function refineFailure(failure: CallFailure, context: RefusalContext): CallFailure {
  switch (failure.kind) {
    case 'protocol_error': {
      const { sign, type } = findSign(failure.message);
      const base = { ...failure, kind: sign?.kind ?? failure.kind, apiErrorType: type };
      const unknownTool = /tool "?([\w./:~-]{1,128})"? (was )?not found|unknown tool/i.test(failure.message);
      if (unknownTool) {
        // A helper that is gone is the server's fault; an Actor's own tool that is gone is that tool's.
        const ofTool = context.way === 'direct';
        return { ...base, refusal: ofTool ? 'tool' : 'server', holdReason: 'tools_missing' };
      }
      return withRefusal(base, sign, failure.message, context, failure.noEffect);
    }
    case 'http_error': {
      const { sign, type } = findSign(failure.message);
      if (!sign || ![400, 402, 403].includes(failure.httpStatus ?? 0))
        return { ...failure, apiErrorType: type };
      const { refusal, holdReason, kind } = forOperation(sign, context);
      return { ...failure, apiErrorType: type, kind, refusal, holdReason, noEffect: true };
    }
    case 'tool_error':
    case 'invalid_input':
    case 'rate_limited':
    case 'capacity':
    case 'network_error':
    case 'timeout':
    case 'session_lost':
    case 'invalid_response':
      return failure;
    default: {
      const never: never = failure.kind;
      return never;
    }
  }
}

function findSign(words: string): { sign: Sign | null; type: string | null } {
  const named = /\(API error type: ([a-z0-9-]{1,64})\)/i.exec(words)?.[1]?.toLowerCase() ?? null;
  const known = named === null ? undefined : knownTypes.get(named);
  if (known) return { sign: known, type: named };
  for (const [type, sign] of knownTypes) {
    // Types of one plain word (`unauthorized`) are words of a sentence, too.
    if (type.includes('-') && words.includes(type)) return { sign, type };
  }
  return { sign: signs.find(({ text }) => text.test(words)) ?? null, type: named };
}

function forOperation(
  sign: Sign,
  context: RefusalContext,
): { refusal: RefusalClass; holdReason: HoldReason | null; kind: FailureKind } {
  const kind = sign.kind ?? 'http_error';
  if (context.operation === 'start' || sign.refusal === 'not_now' || sign.refusal === 'server') {
    return { refusal: sign.refusal, holdReason: sign.holdReason, kind };
  }
  // Reading a run that exists needs no rental and no input: what is left is a token that lacks access.
  if (sign.types.includes('insufficient-permissions')) return { refusal: 'server', holdReason: 'auth', kind };
  return { refusal: 'none', holdReason: null, kind };
}

/** `judged`: the server had judged the request before anything was done, so that nothing recognised is needed. */
function withRefusal(
  failure: CallFailure,
  sign: Sign | null,
  words: string,
  context: RefusalContext,
  judged: boolean,
): CallFailure {
  const { operation, way } = context;
  if (operation !== 'start') {
    if (!sign) return failure;
    const { refusal, holdReason } = forOperation(sign, context);
    return { ...failure, refusal, holdReason };
  }
  const fromTheRead = way === 'direct' && failure.kind !== 'protocol_error';
  if (sign && !(fromTheRead && !sign.onlyFromStart)) {
    return { ...failure, refusal: sign.refusal, holdReason: sign.holdReason, noEffect: true };
  }
  // Not recognised. Behind a validation error or a refusal of call-actor there is no run; anything else is ambiguous.
  if (failure.noEffect) return { ...failure, refusal: 'unknown' };
  if (judged && way === 'call-actor' && !faultOnTheWay.test(words)) return { ...failure, refusal: 'unknown' };
  return failure;
}

/**
 * Only these sentences mean that the server does not know the thing. A 401 while polling reads like a lost run and is
 * not; `record-not-found` of an abort is not believed either, polling confirms it (apify-contract, Errors).
 */
function saysNotFound(words: string, { operation, asked }: RefusalContext): boolean {
  if (asked === undefined) return false;
  const quoted = `'${asked.slice(0, 512)}'`;
  switch (operation) {
    case 'poll':
    case 'abort':
      return words.includes(`Run with ID ${quoted} not found.`);
    case 'read':
      return words.includes(`Dataset ${quoted} not found.`);
    case 'record':
      return words.includes(`Record ${quoted} not found`) || words.includes(`store ${quoted} not found.`);
    case 'connect':
    case 'list_tools':
    case 'start':
    case 'reconcile':
      return false;
    default: {
      const never: never = operation;
      return never;
    }
  }
}
