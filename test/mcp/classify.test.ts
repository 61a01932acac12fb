import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpError } from '@modelcontextprotocol/sdk/types.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AnswerError, CallEnded } from '../../src/mcp/call-context.js';
import { classifyError } from '../../src/mcp/classify.js';
import { cleanMessage } from '../../src/mcp/message.js';
import { operations } from '../../src/mcp/port.js';
import { classifyToolError, refineFailure } from '../../src/mcp/profiles/apify-refusals.js';
import { readPage, readRecord, readRun, readRunList, textsOf } from '../../src/mcp/profiles/apify-replies.js';
import { readTools } from '../../src/mcp/profiles/apify-tools.js';

const secret = 'canary-token-0123456789';
const options = { trace: { status: null, retryAfterMs: null }, secrets: [secret], inSession: true };
const withCode = (code: string, cause = false) => {
  const error = Object.assign(new Error('x'), { code });
  return cause ? new TypeError('fetch failed', { cause: error }) : error;
};
const tls = (code: string, reason: string) =>
  Object.assign(new Error(`write ${code} 40A7:error:0A000000:SSL routines::${reason}:ssl.c:9:`), {
    code,
    syscall: 'write',
  });
const failed = (syscall: string, code: string) => Object.assign(withCode(code), { syscall });

describe('classifyError', () => {
  it.each([
    { error: withCode('ECONNREFUSED'), kind: 'network_error', noEffect: true },
    { error: withCode('ENOTFOUND', true), kind: 'network_error', noEffect: true },
    { error: withCode('CERT_HAS_EXPIRED'), kind: 'network_error', noEffect: true },
    { error: withCode('ERR_TLS_CERT_ALTNAME_INVALID'), kind: 'network_error', noEffect: true },
    { error: failed('connect', 'EHOSTUNREACH'), kind: 'network_error', noEffect: true },
    { error: failed('read', 'EHOSTUNREACH'), kind: 'network_error', noEffect: false },
    { error: failed('write', 'ENETUNREACH'), kind: 'network_error', noEffect: false },
    { error: tls('EPROTO', 'wrong version number'), kind: 'network_error', noEffect: true },
    { error: tls('EPROTO', 'sslv3 alert handshake failure'), kind: 'network_error', noEffect: true },
    { error: tls('EPROTO', 'decryption failed or bad record mac'), kind: 'network_error', noEffect: false },
    {
      error: tls('ERR_SSL_WRONG_VERSION_NUMBER', 'wrong version number'),
      kind: 'network_error',
      noEffect: true,
    },
    {
      error: tls('ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE', 'alert'),
      kind: 'invalid_response',
      noEffect: false,
    },
    { error: withCode('ECONNRESET'), kind: 'network_error', noEffect: false },
    { error: withCode('UND_ERR_SOCKET'), kind: 'network_error', noEffect: false },
    { error: new AggregateError([withCode('ECONNREFUSED')]), kind: 'network_error', noEffect: true },
    { error: new CallEnded('timeout', 'late'), kind: 'timeout', noEffect: false },
    { error: new CallEnded('closed', 'bye'), kind: 'network_error', noEffect: false },
    { error: new AnswerError('invalid_response', 'no'), kind: 'invalid_response', noEffect: false },
    { error: new StreamableHTTPError(404, 'x'), kind: 'session_lost', noEffect: true },
    { error: new McpError(-32001, 'Session not found'), kind: 'session_lost', noEffect: true },
    { error: new McpError(-32601, 'x'), kind: 'protocol_error', noEffect: true },
    { error: new McpError(-32603, 'x'), kind: 'protocol_error', noEffect: false },
    { error: new TypeError('x is not a function'), kind: 'invalid_response', noEffect: false },
    { error: undefined, kind: 'invalid_response', noEffect: false },
  ])('$error: $kind', ({ error, kind, noEffect }) => {
    expect(classifyError(error, options)).toMatchObject({ kind, noEffect });
  });
});

describe('cleanMessage', () => {
  it('leaves one line without secrets, at most 500 characters', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(secret, '\u0000', '\n'))),
        (parts) => {
          const line = cleanMessage(parts.join(''), [secret]);
          expect(line.length).toBeLessThanOrEqual(500);
          expect(line).not.toMatch(/[\p{Cc}\p{Cf}]/u);
          expect(line).not.toContain(secret);
        },
      ),
    );
  });

  it('leaves no half of a secret at a cut', () => {
    for (const before of [480, 65_520, 65_536 - secret.length]) {
      for (const filler of ['x', '\u200b']) {
        expect(cleanMessage(filler.repeat(before) + secret, [secret])).not.toContain(secret.slice(0, 8));
      }
    }
  });

  it('hides a secret in its URL form, and tokens it was not told of', () => {
    const text = `?t=${encodeURIComponent('a b/c?d')} Authorization: Bearer abc.def apify_api_AbC123`;
    expect(cleanMessage(text, ['a b/c?d'])).toBe('?t=[redacted] Authorization: Bearer [redacted] [redacted]');
  });
});

/** Any result a server may send: random JSON, mixed with the words the readers look for. */
const words = fc.constantFrom(
  'runId',
  'status',
  'content',
  'structuredContent',
  'items',
  'datasets',
  'default',
  'id',
  'text',
  'type',
  'image',
  'data',
  'storages',
  '__proto__',
  'tools',
  'name',
  'task',
  '_meta',
);
const anyJson = fc.letrec((tie) => ({
  node: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, -1, 1e308, 'RUNNING for 3s.', "Run with ID 'x' not found.", '{"runId":"r1"}'),
    fc.string(),
    fc.double(),
    fc.array(tie('node'), { maxLength: 4 }),
    fc.dictionary(words, tie('node'), { maxKeys: 6 }),
  ),
})).node;

describe('any reply at all', () => {
  it('is read or found wrong, never thrown on', () => {
    fc.assert(
      fc.property(fc.dictionary(words, anyJson), fc.constantFrom(...operations), (result, operation) => {
        const request = { datasetId: 'd', offset: 0, limit: 10, fields: [] };
        const run = readRun(result, null, []);
        if (run) expect(run.runId).toMatch(/^[\w-]{1,64}$/);
        readPage(result, request);
        readRecord(result, []);
        readRunList(result, request);
        readTools(result);
        for (const way of ['call-actor', 'direct', null] as const) {
          const context = { operation, way, secrets: [secret], asked: 'x' };
          const failure = classifyToolError(textsOf(result), context);
          expect(refineFailure(failure, context)).toBe(failure);
          if (failure.holdReason !== null) expect(['not_now', 'server', 'tool']).toContain(failure.refusal);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
