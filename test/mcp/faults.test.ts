import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer as createPlainServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ScrapeServer } from '../../src/mcp/port.js';
import { type Exchange, type FakeServer, resultOf, startFake } from './fake-server.js';
import { failureOf, okOf, setup, token } from './setup.js';

const runId = 'run00000000000001';
const running = resultOf('poll-running');
const sseHead = { 'content-type': 'text/event-stream' };
const jsonHead = { 'content-type': 'application/json' };

let fake: FakeServer;
let server: ScrapeServer;
let observed: ReturnType<typeof setup>['observed'];

beforeEach(async () => {
  fake = await startFake();
  ({ server, observed } = setup(fake.url, { tuning: { stallMs: 150, callTimeoutMs: 15_000 } }));
});

afterEach(async () => {
  await server.close();
  await fake.close();
});

const answerOf = (exchange: Exchange, result: unknown) =>
  JSON.stringify({ jsonrpc: '2.0', id: exchange.message.id, result });

describe('an answer that goes wrong on the way', () => {
  interface Case {
    readonly name: string;
    readonly answer: (exchange: Exchange) => void;
    readonly kind: string;
    readonly message: RegExp;
  }
  const cases: Case[] = [
    {
      name: 'is no JSON',
      answer: (x) => x.http(200, jsonHead, '<html>'),
      kind: 'invalid_response',
      message: /not JSON/,
    },
    {
      name: 'is empty',
      answer: (x) => x.http(200, jsonHead, ''),
      kind: 'invalid_response',
      message: /not JSON/,
    },
    {
      name: 'is HTML',
      answer: (x) => x.http(200, { 'content-type': 'text/html' }, 'hello'),
      kind: 'invalid_response',
      message: /text\/html/,
    },
    { name: 'is a 202', answer: (x) => x.http(202), kind: 'invalid_response', message: /HTTP 202/ },
    {
      name: 'has another id',
      answer: (x) => x.http(200, jsonHead, JSON.stringify({ jsonrpc: '2.0', id: 9_999, result: running })),
      kind: 'invalid_response',
      message: /no response/,
    },
    {
      name: 'is JSON but no JSON-RPC',
      answer: (x) => x.http(200, jsonHead, JSON.stringify({ id: x.message.id, result: 'yes' })),
      kind: 'invalid_response',
      message: /JSON-RPC/,
    },
    {
      name: 'is encoded unasked',
      answer: (x) => x.http(200, { ...jsonHead, 'content-encoding': 'gzip' }, 'x'),
      kind: 'invalid_response',
      message: /encoded/,
    },
    {
      name: 'is larger than allowed, and says so',
      answer: (x) => x.http(200, { ...jsonHead, 'content-length': '2000000' }, ''),
      kind: 'invalid_response',
      message: /larger than 1000000 bytes/,
    },
    {
      name: 'never ends',
      answer: ({ response }) => {
        response.writeHead(200, jsonHead);
        const more = () => response.write('x'.repeat(60_000), () => setImmediate(more));
        more();
      },
      kind: 'invalid_response',
      message: /larger than/,
    },
    {
      name: 'stands still',
      answer: ({ response }) => void response.writeHead(200, jsonHead).write('{"jsonrpc":'),
      kind: 'network_error',
      message: /stood still/,
    },
    {
      name: 'is cut',
      answer: ({ response }) => {
        response.writeHead(200, { ...jsonHead, 'content-length': '1000' });
        response.write('{"jsonrpc":', () => response.destroy());
      },
      kind: 'network_error',
      message: /./,
    },
    {
      name: 'is a reset',
      answer: ({ response }) => void response.destroy(),
      kind: 'network_error',
      message: /./,
    },
    {
      name: 'is an event stream that ends early',
      answer: (x) => x.http(200, sseHead, ': hello\n\n'),
      kind: 'invalid_response',
      message: /ended without a response/,
    },
    {
      name: 'is an event stream that is cut',
      answer: ({ response }) => {
        response.writeHead(200, sseHead);
        response.write('data: {"jsonrpc"', () => response.destroy());
      },
      kind: 'network_error',
      message: /./,
    },
    {
      name: 'is an event stream of no JSON',
      answer: (x) => x.http(200, sseHead, 'data: hello\n\n'),
      kind: 'invalid_response',
      message: /not JSON/,
    },
    {
      name: 'is an event stream without end',
      answer: ({ response }) => {
        response.writeHead(200, sseHead);
        const more = () => response.write(`: ${'x'.repeat(60_000)}\n`, () => setImmediate(more));
        more();
      },
      kind: 'invalid_response',
      message: /larger than/,
    },
    {
      name: 'is a redirect to another origin',
      answer: (x) => x.http(307, { location: 'http://127.0.0.2:1/steal' }),
      kind: 'http_error',
      message: /Redirect to http:\/\/127\.0\.0\.2:1\/steal not followed/,
    },
    {
      name: 'is a 502',
      answer: (x) => x.http(502, {}, '<h1>Bad gateway</h1>'),
      kind: 'http_error',
      message: /Bad gateway/,
    },
    {
      name: 'is a task',
      answer: (x) => x.result({ task: { taskId: 't', status: 'working' } }),
      kind: 'invalid_response',
      message: /task/,
    },
    { name: 'is an empty object', answer: (x) => x.result({}), kind: 'invalid_response', message: /shape/ },
    {
      name: 'is about another run',
      answer: (x) => x.result({ structuredContent: { runId: 'run00000000000002', status: 'RUNNING' } }),
      kind: 'invalid_response',
      message: /shape/,
    },
    {
      name: 'is an internal error',
      answer: (x) => x.error(-32603, 'boom'),
      kind: 'protocol_error',
      message: /^boom$/,
    },
  ];
  it.each(cases)('$name: $kind', async ({ answer, kind, message }) => {
    fake.onCall = answer;
    const began = performance.now();
    const failure = failureOf(await server.poll(runId));
    expect(failure).toMatchObject({ kind, message: expect.stringMatching(message), notFound: false });
    // Found while reading, not at the timeout.
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(observed.at(-1)).toMatchObject({ operation: 'poll', result: kind });
    // The connection, or a new one, works again.
    fake.onCall = (exchange) => exchange.result(running);
    expect(okOf(await server.poll(runId)).status).toBe('RUNNING');
  });

  it('marks an answer past the size bound, so that a smaller page is asked for', async () => {
    fake.onCall = (exchange) => exchange.result({ structuredContent: { items: ['x'.repeat(1_100_000)] } });
    const request = { datasetId: 'ds1', offset: 0, limit: 1, fields: [] };
    expect(failureOf(await server.readPage(request))).toMatchObject({
      kind: 'invalid_response',
      tooLarge: true,
    });
  });
});

describe('an HTTP status', () => {
  const cases = [
    { status: 401, kind: 'http_error', refusal: 'server', holdReason: 'auth', noEffect: true },
    { status: 402, kind: 'http_error', refusal: 'server', holdReason: 'payment', noEffect: false },
    { status: 403, kind: 'http_error', refusal: 'server', holdReason: 'auth', noEffect: false },
    { status: 413, kind: 'http_error', refusal: 'scrape', holdReason: null, noEffect: true },
    { status: 429, kind: 'rate_limited', refusal: 'not_now', holdReason: 'rate_limit', noEffect: true },
    { status: 500, kind: 'http_error', refusal: 'none', holdReason: null, noEffect: false },
    { status: 503, kind: 'http_error', refusal: 'none', holdReason: null, noEffect: false },
    { status: 400, kind: 'http_error', refusal: 'none', holdReason: null, noEffect: false },
    {
      status: 400,
      body: '{"error":{"code":-32600,"message":"Invalid Request"}}',
      kind: 'http_error',
      refusal: 'none',
      holdReason: null,
      noEffect: true,
    },
    {
      status: 402,
      body: '{"error":{"type":"concurrent-runs-limit-exceeded","message":"Too many"}}',
      kind: 'capacity',
      refusal: 'not_now',
      holdReason: 'capacity',
      noEffect: true,
    },
  ];
  it.each(cases)('$status $body: $kind, $refusal', async ({ status, body = 'why', ...expected }) => {
    fake.onCall = (exchange) => exchange.http(status, {}, body);
    const failure = failureOf(await server.poll(runId));
    expect(failure).toMatchObject({ ...expected, httpStatus: status });
  });

  it.each([
    { header: '1', ms: 1_000 },
    { header: '86400', ms: 600_000 },
    { header: new Date(Date.now() - 5_000).toUTCString(), ms: 0 },
    { header: 'soon', ms: null },
    { header: '-3', ms: null },
  ])('Retry-After $header is read as $ms', async ({ header, ms }) => {
    fake.onCall = (exchange) => exchange.http(503, { 'retry-after': header });
    expect(failureOf(await server.poll(runId)).retryAfterMs).toBe(ms);
  });

  it('never shows the token a server reflects, not even with invisible characters in it', async () => {
    const hidden = `${token.slice(0, 12)}\u200b${token.slice(12)}`;
    fake.onCall = (exchange) => exchange.http(500, {}, `no ${token} and ${hidden} and \u001b[31mred\u0000`);
    const { message } = failureOf(await server.poll(runId));
    expect(message).not.toContain('canary');
    expect(message).toBe('HTTP 500: no [redacted] and [redacted] and [31mred');
  });
});

describe('a server that is not there', () => {
  it('refuses the connection: nothing happened, the server is held', async () => {
    await fake.close();
    const start = await server.start({
      tool: 'acme/yellowpages-scraper',
      input: {},
      options: {},
      runTimeoutMs: 1_000,
      timeoutMs: 1_000,
    });
    expect(failureOf(start)).toMatchObject({
      kind: 'network_error',
      noEffect: true,
      refusal: 'server',
      holdReason: 'unreachable',
    });
    fake = await startFake();
  });

  it('is at another address: 404 without a session', async () => {
    fake.onInitialize = (exchange) => exchange.http(404, {}, 'no such page');
    expect(failureOf(await server.describe())).toMatchObject({
      kind: 'http_error',
      httpStatus: 404,
      noEffect: true,
      refusal: 'server',
    });
  });

  it('speaks no TLS where TLS is configured', async () => {
    const { server: secure } = setup(fake.url.replace('http:', 'https:'));
    expect(failureOf(await secure.describe())).toMatchObject({ kind: 'network_error', noEffect: true });
    await secure.close();
  });
});

describe('giving up', () => {
  it('a timeout really ends the HTTP request and sends no cancellation', async () => {
    await server.describe();
    const cut = new Promise<void>((resolve) => {
      fake.onCall = ({ response }) => void response.on('close', resolve);
    });
    const failure = failureOf(
      await server.start({
        tool: 'acme/yellowpages-scraper',
        input: { location: 'x' },
        options: {},
        runTimeoutMs: 1_000,
        timeoutMs: 100,
      }),
    );
    await cut;
    expect(failure).toMatchObject({ kind: 'timeout', refusal: 'none', noEffect: false });
    await server.close();
    expect(fake.count('notifications/cancelled')).toBe(0);
    // Ending the session would end the start the server is still at work on.
    expect(fake.seen.some(({ method }) => method === 'DELETE')).toBe(false);
  });

  it("a caller's abort ends the request and is not held against the server", async () => {
    await server.describe();
    const controller = new AbortController();
    const cut = new Promise<void>((resolve) => {
      fake.onCall = ({ response }) => {
        response.on('close', resolve);
        controller.abort();
      };
    });
    const before = observed.length;
    const failure = failureOf(await server.poll(runId, { signal: controller.signal }));
    await cut;
    expect(failure.message).toMatch(/given up/);
    expect(observed.length).toBe(before);
    expect(fake.count('notifications/cancelled')).toBe(0);
  });

  it('closing waits a bounded time for a call, ends it, and refuses later ones', async () => {
    await server.describe();
    const arrived = new Promise<void>((resolve) => {
      fake.onCall = () => resolve();
    });
    const pending = server.poll(runId);
    await arrived;
    await server.close();
    expect(failureOf(await pending)).toMatchObject({ kind: 'network_error', noEffect: false });
    expect(failureOf(await server.poll(runId))).toMatchObject({ kind: 'network_error', noEffect: true });
  });

  it('an idle session is ended on the server', async () => {
    await server.describe();
    await server.close();
    expect(fake.seen.filter(({ method }) => method === 'DELETE')).toHaveLength(1);
  });
});

describe('event streams', () => {
  it('are read like JSON answers', async () => {
    fake.sse = true;
    fake.onCall = (exchange) => exchange.result(running);
    expect(okOf(await server.poll(runId))).toMatchObject({ runId, status: 'RUNNING', itemCount: 13 });
  });

  it('that stay open after the response do not hold the call up', async () => {
    fake.onCall = (exchange) => {
      exchange.response.writeHead(200, sseHead);
      exchange.response.write(`id: 1\r\nevent: message\r\ndata: ${answerOf(exchange, running)}\r\n\r\n`);
    };
    expect(okOf(await server.poll(runId)).status).toBe('RUNNING');
  });

  it('may be cut anywhere, also in the middle of a character', async () => {
    const message = 'Größe – 日本語 🚀';
    fake.onCall = async (exchange) => {
      const structuredContent = { ...(running.structuredContent as object), statusMessage: message };
      const bytes = Buffer.from(`data: ${answerOf(exchange, { structuredContent })}\n\n`);
      exchange.response.writeHead(200, sseHead);
      for (let at = 0; at < bytes.length; at += 7) {
        await new Promise((resolve) => exchange.response.write(bytes.subarray(at, at + 7), resolve));
      }
      exchange.response.end();
    };
    expect(okOf(await server.poll(runId)).statusMessage).toBe(message);
  });

  it('may carry a ping of the server, which is answered', async () => {
    const pong = new Promise<void>((resolve) => {
      fake.onCall = async (exchange) => {
        const ping = JSON.stringify({ jsonrpc: '2.0', id: 'ping-1', method: 'ping' });
        exchange.response.writeHead(200, sseHead);
        exchange.response.write(`data: ${ping}\n\n`);
        while (!fake.seen.some(({ message }) => message?.id === 'ping-1')) await new Promise(setImmediate);
        resolve();
        exchange.response.end(`data: ${answerOf(exchange, running)}\n\n`);
      };
    });
    expect(okOf(await server.poll(runId)).status).toBe('RUNNING');
    await pong;
  });

  it('may carry a ping under the id of a call in flight, whose status it does not touch', async () => {
    fake.onCall = async (exchange) => {
      if ('result' in exchange.message) return exchange.http(202);
      const { id } = exchange.message;
      exchange.response.writeHead(200, sseHead);
      exchange.response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n\n`);
      while (!fake.seen.some(({ message }) => message?.id === id && 'result' in message)) {
        await new Promise(setImmediate);
      }
      // The answer to it is on its way; the call ends after that.
      await new Promise((resolve) => setTimeout(resolve, 50));
      exchange.response.destroy();
    };
    expect(failureOf(await server.poll(runId))).toMatchObject({ kind: 'network_error', httpStatus: 200 });
  });
});

it('a server that accepts and says nothing ends at the timeout', async () => {
  const silent = createPlainServer(() => undefined).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const { server: slow } = setup(`http://127.0.0.1:${port}/`, { tuning: { connectTimeoutMs: 100 } });
  expect(failureOf(await slow.describe())).toMatchObject({ kind: 'timeout', noEffect: true });
  await slow.close();
  silent.close();
});
