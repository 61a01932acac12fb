import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CallResult, RunView, ScrapeServer } from '../../src/mcp/port.js';
import { type Exchange, type FakeServer, type Json, recorded, startFake } from '../mcp/fake-server.js';
import { actor, setup } from '../mcp/setup.js';
import { mustBeFailure, mustBeUnpolluted, mustLeadOn } from './classified.js';
import { canary, mutate, mutations, nasty } from './hostile.js';
import { failures, seed } from './size.js';

const replies: Json[] = readdirSync(new URL('../wire/', import.meta.url))
  .flatMap((name) => recorded(name.replace('.json', '')))
  .flatMap((exchange) => exchange.replies)
  .filter((reply) => reply.id !== undefined);

let fake: FakeServer;
let server: ScrapeServer;
beforeAll(async () => {
  fake = await startFake();
  // A quiet that was asked for would only be waited for here; what it is asked with is part of the failure.
  const limiter = { acquire: async () => undefined, penalise: () => undefined, close: () => undefined };
  server = setup(fake.url, { config: { token: canary }, answerBytes: 200_000, limiter }).server;
});
afterAll(async () => {
  await server.close();
  await fake.close();
  mustBeUnpolluted();
});

/** What goes over the wire for a call: a status, headers, and a body that need not be what they say. */
interface Wire {
  readonly status: number;
  readonly type: string;
  readonly retryAfter: string | null;
  readonly reply: Json;
  readonly changes: Parameters<typeof mutate>[1];
  /** What becomes of the body: as it is, an event stream of it, cut, doubled, or bytes that are no text. */
  readonly shape: 'whole' | 'events' | 'cut' | 'twice' | 'bytes' | 'deep' | 'empty' | 'nasty';
  readonly word: string;
}

const wires: fc.Arbitrary<Wire> = fc.record({
  status: fc.oneof(
    { arbitrary: fc.constant(200), weight: 5 },
    fc.constantFrom(
      202,
      204,
      301,
      307,
      400,
      401,
      402,
      403,
      404,
      405,
      409,
      413,
      418,
      429,
      500,
      502,
      503,
      504,
      599,
    ),
  ),
  type: fc.oneof(
    { arbitrary: fc.constant('application/json'), weight: 4 },
    fc.constantFrom('text/event-stream', 'text/html', '', 'application/JSON; charset=x', 'nonsense'),
  ),
  retryAfter: fc.constantFrom(null, '3', '-1', '1e99', 'Tue, 01 Dec 2099 00:00:00 GMT', 'soon', ' '),
  reply: fc.constantFrom(...replies),
  changes: mutations,
  shape: fc.oneof(
    { arbitrary: fc.constant('whole' as const), weight: 3 },
    fc.constantFrom('events', 'cut', 'twice', 'bytes', 'deep', 'empty', 'nasty'),
  ),
  word: fc.constantFrom(...nasty),
}) as fc.Arbitrary<Wire>;

function send({ response, message }: Exchange, wire: Wire): void {
  const headers: Record<string, string> = {};
  if (wire.shape === 'events') headers['content-type'] = 'text/event-stream';
  else if (wire.type !== '') headers['content-type'] = wire.type;
  if (wire.retryAfter !== null) headers['retry-after'] = wire.retryAfter;
  if (wire.status >= 300 && wire.status < 400) headers.location = 'http://127.0.0.1:9/elsewhere';
  response.writeHead(wire.status, headers);
  response.end(wire.status === 204 ? undefined : bodyOf(wire, message.id));
}

function bodyOf(wire: Wire, id: number): string | Buffer {
  const reply = mutate({ ...wire.reply, id }, wire.changes);
  const json = JSON.stringify(reply) ?? '';
  switch (wire.shape) {
    case 'whole':
      return json;
    case 'events':
      return `event: message\r\ndata: ${json}\n\n`;
    case 'cut':
      return json.slice(0, Math.floor(json.length / 2));
    case 'twice':
      return `[${json},${json}]`;
    case 'bytes':
      return Buffer.from([0xff, 0xfe, 0, 1, 0x80, ...Buffer.from(json.slice(0, 200))]);
    case 'deep':
      return `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":${'{"a":['.repeat(15_000)}${']}'.repeat(15_000)}}}`;
    case 'empty':
      return '';
    case 'nasty':
      return `<html>${wire.word}</html>${JSON.stringify({ error: { message: wire.word, code: -32001 } })}`;
    default:
      return wire.shape satisfies never;
  }
}

const runId = 'run00000000000001';
const calls: readonly (() => Promise<CallResult<unknown>>)[] = [
  () => server.poll(runId),
  () => server.abort(runId),
  () => server.readPage({ datasetId: 'dsrun00000000000001', offset: 0, limit: 10, fields: [] }),
  () => server.readRecord('kvrun00000000000001', 'OUTPUT'),
  () => server.listRuns({ offset: 0, limit: 10 }),
  () => server.start({ tool: actor, input: {}, options: {}, runTimeoutMs: 60_000, timeoutMs: 15_000 }),
  () => server.describe({ fresh: true }),
];
const ofRuns = new Set([0, 1, 5]);

it('whatever comes over the wire, a call ends classified and the next one works', {
  timeout: 180_000,
}, async () => {
  const kinds = new Map<string, number>();
  const property = fc.asyncProperty(wires, fc.nat(calls.length - 1), async (wire, which) => {
    fake.onCall = (exchange) => send(exchange, wire);
    fake.onList = which === 6 ? (exchange) => send(exchange, wire) : fake.onList;
    const usualList = list;
    try {
      const result = await (calls[which] as (typeof calls)[number])();
      const kind = result.ok ? 'ok' : result.failure.kind;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      if (!result.ok) mustBeFailure(result.failure);
      if (!result.ok || ofRuns.has(which)) mustLeadOn(result as CallResult<RunView>);
    } finally {
      fake.onList = usualList;
    }
  });
  const list = fake.onList;
  await fc.assert(property, { numRuns: failures, seed });
  expect([...kinds.keys()]).toEqual(
    expect.arrayContaining([
      'ok',
      'http_error',
      'invalid_response',
      'rate_limited',
      'session_lost',
      'tool_error',
    ]),
  );

  const good = replies.find((reply) => JSON.stringify(reply).includes('"status":"SUCCEEDED"'));
  fake.onCall = (exchange) => exchange.result(good?.result as Json);
  expect(await server.poll(runId)).toMatchObject({ ok: true, value: { status: 'SUCCEEDED' } });
});
