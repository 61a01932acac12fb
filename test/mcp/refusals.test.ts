import { describe, expect, it } from 'vitest';
import { makeFailure } from '../../src/mcp/classify.js';
import { classifyToolError, refineFailure } from '../../src/mcp/profiles/apify-refusals.js';

const actor = 'acme/yellowpages-scraper';
const capacity = { kind: 'capacity', refusal: 'not_now', holdReason: 'capacity' };
const rate = { kind: 'rate_limited', refusal: 'not_now', holdReason: 'rate_limit' };
const payment = { kind: 'tool_error', refusal: 'server', holdReason: 'payment' };
const auth = { kind: 'tool_error', refusal: 'server', holdReason: 'auth' };
const scrape = { kind: 'invalid_input', refusal: 'scrape', holdReason: null };
const tool = (holdReason: string) => ({ kind: 'tool_error', refusal: 'tool', holdReason });

/** By structured code, whatever the sentence beside it says. `sure`: only a start that made no run says it. */
const byType = [
  { type: 'concurrent-runs-limit-exceeded', expected: capacity, sure: true },
  { type: 'memory-limit-exceeded', expected: capacity, sure: true },
  { type: 'actor-memory-limit-exceeded', expected: capacity, sure: true },
  { type: 'cannot-start-actor-runs', expected: capacity, sure: true },
  { type: 'rate-limit-exceeded', expected: rate, sure: false },
  { type: 'not-enough-usage-to-run-paid-actor', expected: payment, sure: true },
  { type: 'platform-feature-disabled', expected: payment, sure: true },
  { type: 'full-permission-actor-not-approved', expected: tool('auth'), sure: true },
  { type: 'actor-is-not-rented', expected: tool('payment'), sure: true },
  { type: 'actor-disabled', expected: tool('tools_missing'), sure: true },
  { type: 'public-actor-disabled', expected: tool('tools_missing'), sure: true },
  { type: 'max-total-charge-usd-below-minimum', expected: scrape, sure: true },
  { type: 'invalid-input', expected: scrape, sure: true },
  { type: 'insufficient-permissions', expected: tool('auth'), sure: false },
  { type: 'user-or-token-not-found', expected: auth, sure: false },
];

/** By the sentence alone, as Apify's API and its MCP server word it. */
const bySentence = [
  { text: 'Payment required', expected: payment, sure: true },
  { text: 'Payment required to run this Actor or access this resource.', expected: payment, sure: true },
  {
    text: 'By launching this job you will exceed your remaining usage. Please consider an upgrade to a higher subscription plan.',
    expected: payment,
    sure: true,
  },
  { text: 'Monthly usage hard limit exceeded', expected: payment, sure: true },
  {
    text: 'By launching this job you will exceed the memory limit of 8192MB for all your Actor runs and builds. Please consider an upgrade to a higher subscription plan.',
    expected: capacity,
    sure: true,
  },
  {
    text: 'Account memory quota exceeded for your plan. Retry with a smaller callOptions.memory',
    expected: capacity,
    sure: true,
  },
  {
    text: 'You have reached your account limit for concurrent Actor runs. Wait for running Actors to finish, or upgrade your plan at https://console.apify.com/billing/subscription.',
    expected: capacity,
    sure: true,
  },
  {
    text: 'You have reached the maximum number of concurrent Actor runs of your plan.',
    expected: capacity,
    sure: true,
  },
  { text: 'You cannot start more Actor runs at the moment', expected: capacity, sure: true },
  { text: 'You have exceeded the rate limit of 60 requests per second', expected: rate, sure: false },
  { text: 'Request failed with status code 429', expected: rate, sure: false },
  {
    text: 'You must rent a paid Actor in order to run it after its free trial has expired',
    expected: tool('payment'),
    sure: true,
  },
  {
    text: 'This Actor requires full permissions, which you have not approved yet.',
    expected: tool('auth'),
    sure: true,
  },
  { text: 'This Actor has been disabled', expected: tool('tools_missing'), sure: true },
  {
    text: 'This public Actor has been disabled by its developer',
    expected: tool('tools_missing'),
    sure: true,
  },
  { text: `Actor '${actor}' was not found.`, expected: tool('tools_missing'), sure: true },
  { text: 'Actor was not found', expected: tool('tools_missing'), sure: true },
  {
    text: 'Input is not valid: Field input.searchStringsArray must be an array',
    expected: scrape,
    sure: true,
  },
  { text: `Input is required for Actor '${actor}'.`, expected: scrape, sure: true },
  {
    text: 'The maximum total charge of the run is below the minimum that this Actor requires',
    expected: scrape,
    sure: true,
  },
  { text: 'User was not found or authentication token is not valid', expected: auth, sure: false },
  { text: 'Authentication failed, check APIFY_TOKEN is set and valid.', expected: auth, sure: false },
  { text: 'Insufficient permissions', expected: tool('auth'), sure: false },
];

const unsure = [
  'Internal server error',
  'socket hang up',
  'read ECONNRESET',
  'timeout of 360000ms exceeded',
  'Request failed with status code 503',
  "Failed to get Actor run 'run1': User was not found",
];

const starting = { operation: 'start' as const, secrets: [] };
const wrappings = [
  (text: string) => text,
  (text: string) => `MCP error -32602: MCP error -32602: ${text}`,
  (text: string) => `Failed to call Actor '${actor}': ${text}`,
  (text: string) =>
    `Error calling tool "acme--yellowpages-scraper": ${text}. Verify the tool name and input parameters.`,
];

describe('a refused start', () => {
  const table = [
    ...byType.map((row) => ({ text: `Something new (API error type: ${row.type})`, ...row })),
    ...byType.map((row) => ({ text: `HTTP 500: {"error":{"type":"${row.type}"}}`, ...row })),
    ...bySentence,
  ];
  it.each(table)('$text', ({ text, expected, sure }) => {
    for (const wrap of wrappings) {
      const texts = [
        wrap(text),
        'Please verify the Actor name, input parameters, and ensure the Actor exists.',
      ];
      const viaCallActor = classifyToolError(texts, { ...starting, way: 'call-actor' });
      expect(viaCallActor).toMatchObject({ ...expected, noEffect: true, notFound: false });
      const direct = classifyToolError(texts, { ...starting, way: 'direct' });
      const ambiguous = { kind: expected.kind, refusal: 'none', holdReason: null, noEffect: false };
      expect(direct).toMatchObject(sure ? { ...expected, noEffect: true } : ambiguous);
    }
  });

  it.each(unsure)('%s: ambiguous either way', (text) => {
    for (const way of ['call-actor', 'direct'] as const) {
      const failure = classifyToolError([wrappings[2]?.(text) ?? ''], { ...starting, way });
      // The read after the start failed for want of a token: with call-actor there is no such read.
      const isAuth = way === 'call-actor' && text.includes('User was not found or');
      expect(failure).toMatchObject({ refusal: isAuth ? 'server' : 'none', noEffect: isAuth });
    }
  });

  it('nobody has written down: unknown through call-actor, ambiguous through a direct tool', () => {
    const texts = [
      'The run was declined for a reason nobody has written down (API error type: moon-phase-unsuitable)',
    ];
    expect(classifyToolError(texts, { ...starting, way: 'call-actor' })).toMatchObject({
      refusal: 'unknown',
      noEffect: false,
      apiErrorType: 'moon-phase-unsuitable',
    });
    expect(classifyToolError(texts, { ...starting, way: 'direct' })).toMatchObject({
      refusal: 'none',
      noEffect: false,
    });
  });

  it('is not judged by the words of a schema that is sent along', () => {
    const schema =
      'Input schema:\n```json\n{"description":"You must rent it: payment required, token invalid"}\n```';
    const failure = classifyToolError([`Input validation failed for Actor '${actor}'.`, schema], {
      ...starting,
      way: 'call-actor',
    });
    expect(failure).toMatchObject(scrape);
    expect(failure.message).not.toContain('rent');
    expect(classifyToolError([schema], { ...starting, way: 'call-actor' }).kind).toBe('tool_error');
  });

  it('by JSON-RPC had no effect; the arguments are the fault of the scrape, the rest is unknown', () => {
    const protocol = (message: string, rpcCode: number) =>
      refineFailure(makeFailure('protocol_error', message, [], { rpcCode, noEffect: rpcCode === -32602 }), {
        ...starting,
        way: 'call-actor',
      });
    expect(protocol('Invalid arguments for tool "call-actor".\nValidation errors: /x', -32602)).toMatchObject(
      {
        refusal: 'scrape',
        noEffect: true,
      },
    );
    expect(protocol('Who knows', -32602)).toMatchObject({ refusal: 'unknown', noEffect: true });
    expect(protocol('Who knows', -32603)).toMatchObject({ refusal: 'none', noEffect: false });
    expect(protocol('cannot-start-actor-runs', -32000)).toMatchObject({ ...capacity, noEffect: true });
    expect(protocol('Tool "call-actor" was not found.', -32602)).toMatchObject({
      refusal: 'server',
      holdReason: 'tools_missing',
    });
  });
});

describe('a refusal of another call', () => {
  const ask = (operation: 'poll' | 'read' | 'record' | 'abort' | 'reconcile', text: string, asked = 'x1') =>
    classifyToolError([text], { operation, way: null, secrets: [], asked });

  it.each([
    { operation: 'poll' as const, text: "Run with ID 'x1' not found.", notFound: true },
    { operation: 'poll' as const, text: "Run with ID 'x2' not found.", notFound: false },
    {
      operation: 'poll' as const,
      text: "Failed to get Actor run 'x1': User was not found or authentication token is not valid.\nPlease verify the run ID and ensure that the run exists.",
      notFound: false,
    },
    { operation: 'poll' as const, text: "Dataset 'x1' not found.", notFound: false },
    {
      operation: 'abort' as const,
      text: 'Actor run was not found (API error type: record-not-found)',
      notFound: false,
    },
    { operation: 'abort' as const, text: "Run with ID 'x1' not found.", notFound: true },
    { operation: 'read' as const, text: "Dataset 'x1' not found.", notFound: true },
    { operation: 'record' as const, text: "Record 'x1' not found in key-value store 'kv'.", notFound: true },
    { operation: 'reconcile' as const, text: "Actor 'x1' not found.", notFound: false },
  ])('$operation, $text: notFound $notFound', ({ operation, text, notFound }) => {
    expect(ask(operation, text).notFound).toBe(notFound);
  });

  it.each([
    {
      text: 'User was not found or authentication token is not valid',
      refusal: 'server',
      holdReason: 'auth',
    },
    { text: 'Insufficient permissions', refusal: 'server', holdReason: 'auth' },
    { text: 'Rate limit exceeded', refusal: 'not_now', holdReason: 'rate_limit' },
    { text: 'You must rent a paid Actor', refusal: 'none', holdReason: null },
    { text: 'Input is not valid', refusal: 'none', holdReason: null },
    { text: '', refusal: 'none', holdReason: null },
  ])('poll, "$text": $refusal', ({ text, ...expected }) => {
    expect(ask('poll', text)).toMatchObject({ ...expected, noEffect: false });
  });

  it('by HTTP is read for its words, too', () => {
    const http = (status: number, message: string) =>
      refineFailure(makeFailure('http_error', message, [], { httpStatus: status }), {
        ...starting,
        way: 'call-actor',
      });
    expect(http(402, 'HTTP 402: no (API error type: memory-limit-exceeded)')).toMatchObject(capacity);
    expect(http(403, 'HTTP 403: You must rent a paid Actor')).toMatchObject({
      refusal: 'tool',
      holdReason: 'payment',
    });
    expect(http(500, 'HTTP 500: payment required')).toMatchObject({ refusal: 'none' });
  });
});
