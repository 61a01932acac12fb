import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLimiter, memoryTokens } from '../../src/mcp/limiter.js';
import type { ScrapeServer } from '../../src/mcp/port.js';
import { type FakeServer, resultOf, startFake } from './fake-server.js';
import { actor, failureOf, okOf, type Setup, setup } from './setup.js';

const runId = 'run00000000000001';
const running = resultOf('poll-running');
const started = resultOf('start-call-actor-wait0');
const start = { tool: actor, input: { location: 'x' }, options: {}, runTimeoutMs: 60_000, timeoutMs: 15_000 };

let fake: FakeServer;
let server: ScrapeServer;
let observed: Setup['observed'];

beforeEach(async () => {
  fake = await startFake();
  fake.onCall = (exchange) => exchange.result(running);
  ({ server, observed } = setup(fake.url));
});

afterEach(async () => {
  await server.close();
  await fake.close();
});

describe('sessions', () => {
  it('are opened when first needed, once for all who wait, without a standing stream', async () => {
    expect(fake.seen).toHaveLength(0);
    await Promise.all(Array.from({ length: 20 }, () => server.poll(runId)));
    expect(fake.count('initialize')).toBe(1);
    expect(fake.count('tools/call')).toBe(20);
    expect(fake.seen.some(({ method }) => method === 'GET')).toBe(false);
    expect(observed.filter(({ operation }) => operation === 'connect')).toHaveLength(1);
  });

  it('carry the token and the allow-list, and keep the query the address had', async () => {
    const { server: other } = setup(`${fake.url}?telemetry=off&tools=all`);
    await other.poll(runId);
    const { url, headers } = fake.seen.at(-1) ?? { url: '', headers: {} };
    const query = new URL(url, fake.url).searchParams;
    expect(query.get('telemetry')).toBe('off');
    expect(query.getAll('tools')).toEqual([`${actor},call-actor,runs`]);
    expect(headers.authorization).toMatch(/^Bearer apify_api_/);
    await other.close();
  });

  it.each([
    { name: '404 with -32001', forget: () => undefined },
    {
      name: '400 in words',
      forget: (it: FakeServer) => {
        const { onCall } = it;
        it.onCall = (exchange) => {
          it.onCall = onCall;
          exchange.http(400, {}, '{"error":{"code":-32000,"message":"Bad Request: No valid session ID"}}');
        };
      },
    },
  ])('that the server forgot ($name) are rebuilt, and the call is made again', async ({ name, forget }) => {
    okOf(await server.poll(runId));
    if (name.startsWith('404')) fake.session = 'session-2';
    forget(fake);
    expect(okOf(await server.poll(runId)).status).toBe('RUNNING');
    expect(fake.count('initialize')).toBe(2);
    expect(observed.map(({ result }) => result)).toEqual(['ok', 'ok', 'session_lost', 'ok', 'ok']);
  });

  it('that are gone repeat a start once, since it had no effect', async () => {
    await server.describe();
    fake.session = 'session-2';
    fake.onCall = (exchange) => exchange.result(started);
    expect(okOf(await server.start(start)).runId).toBe('run00000000000007');
    // One was answered with 404, one made the run.
    expect(fake.calls()).toEqual(['call-actor', 'call-actor']);
  });

  it('that keep getting lost end the call as session_lost, without an effect', async () => {
    fake.onCall = (exchange) => exchange.http(404);
    expect(failureOf(await server.poll(runId))).toMatchObject({ kind: 'session_lost', noEffect: true });
    expect(fake.count('tools/call')).toBe(2);
  });

  it('are recycled after a number of errors, and of calls', async () => {
    const { server: brittle } = setup(fake.url, { tuning: { maxErrors: 2, maxCalls: 5 } });
    fake.onCall = (exchange) => exchange.http(500);
    for (let n = 0; n < 4; n += 1) await brittle.poll(runId);
    expect(fake.count('initialize')).toBe(2);
    fake.onCall = (exchange) => exchange.result(running);
    for (let n = 0; n < 6; n += 1) okOf(await brittle.poll(runId));
    expect(fake.count('initialize')).toBe(4);
    await brittle.close();
  });

  it('that are recycled finish what they have in flight', async () => {
    const { server: brittle } = setup(fake.url, { tuning: { maxCalls: 2 } });
    let answer: () => void = () => undefined;
    const arrived = new Promise<void>((resolve) => {
      fake.onCall = (exchange) => {
        answer = () => exchange.result(running);
        resolve();
      };
    });
    const slow = brittle.poll(runId);
    await arrived;
    fake.onCall = (exchange) => exchange.result(running);
    okOf(await brittle.poll(runId));
    okOf(await brittle.poll(runId));
    expect(fake.count('initialize')).toBe(2);
    answer();
    expect(okOf(await slow).status).toBe('RUNNING');
    await brittle.close();
  });

  it('that cannot be opened fail all calls without an effect, and are tried again', async () => {
    fake.onInitialize = (exchange) => exchange.http(503);
    const failure = failureOf(await server.start(start));
    expect(failure).toMatchObject({ kind: 'http_error', httpStatus: 503, noEffect: true });
    const { server: again } = setup(fake.url);
    fake.onInitialize = (exchange) =>
      exchange.result({
        protocolVersion: '2025-11-25',
        capabilities: {},
        serverInfo: { name: 'x', version: '1' },
      });
    expect(okOf(await again.poll(runId)).status).toBe('RUNNING');
    await again.close();
  });
});

describe('concurrency', () => {
  it('is bounded above the sockets; who waits may leave', async () => {
    const { server: narrow } = setup(fake.url, { tuning: { concurrency: 2 } });
    await narrow.poll(runId);
    const answers: (() => void)[] = [];
    let arrived: () => void = () => undefined;
    const both = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    fake.onCall = (exchange) => {
      answers.push(() => exchange.result(running));
      if (answers.length === 2) arrived();
    };
    const controller = new AbortController();
    const polls = [1, 2, 3].map(() => narrow.poll(runId));
    const left = narrow.poll(runId, { signal: controller.signal });
    await both;
    controller.abort();
    expect(failureOf(await left)).toMatchObject({ noEffect: true });
    expect(answers).toHaveLength(2);
    fake.onCall = (exchange) => exchange.result(running);
    for (const answer of answers) answer();
    for (const poll of polls) expect(okOf(await poll).status).toBe('RUNNING');
    await narrow.close();
  });
});

describe('the request rate', () => {
  it('is held over connecting, listing and calling', async () => {
    const limiter = createLimiter(memoryTokens(20));
    const { server: slow } = setup(fake.url, { limiter });
    const began = performance.now();
    await slow.describe();
    await Promise.all([slow.poll(runId), slow.poll(runId), slow.poll(runId)]);
    // Five calls, two at once: three gaps of 50 ms at least.
    expect(performance.now() - began).toBeGreaterThanOrEqual(145);
    await slow.close();
    limiter.close();
  });

  it('stops for as long as a 429 asks', async () => {
    const asked: number[] = [];
    const limiter = createLimiter(memoryTokens(10_000));
    const spy = {
      ...limiter,
      acquire: limiter.acquire.bind(limiter),
      penalise: (ms: number) => asked.push(ms),
    };
    const { server: polite } = setup(fake.url, { limiter: { ...spy, close: () => limiter.close() } });
    fake.onCall = (exchange) => exchange.http(429, { 'retry-after': '7' });
    await polite.poll(runId);
    fake.onCall = (exchange) => exchange.http(429);
    await polite.poll(runId);
    fake.onCall = (exchange) => exchange.http(503, { 'retry-after': '3' });
    await polite.poll(runId);
    fake.onCall = (exchange) => exchange.http(503);
    await polite.poll(runId);
    expect(asked).toEqual([7_000, 1_000, 3_000]);
    await polite.close();
  });

  it('that lets a start through too late, its process having been frozen, sends it no more', async () => {
    const limiter = createLimiter(memoryTokens(10_000));
    const frozen = {
      acquire: async (...args: Parameters<typeof limiter.acquire>) => {
        await limiter.acquire(...args);
        await new Promise((resolve) => setTimeout(resolve, 60));
      },
      penalise: limiter.penalise.bind(limiter),
      close: () => limiter.close(),
    };
    const { server: late } = setup(fake.url, { limiter: frozen });
    await late.describe();
    const before = fake.count('tools/call');
    const sendBy = Date.now() + 30;
    // Nothing is wrong with the server: it is not held for that.
    expect(failureOf(await late.start({ ...start, sendBy }))).toMatchObject({
      refusal: 'none',
      noEffect: true,
    });
    expect(fake.count('tools/call')).toBe(before);
    okOf(await late.poll(runId));
    await late.close();
  });

  it('that lets nobody through ends a start without an effect', async () => {
    const limiter = createLimiter(memoryTokens(10_000));
    const { server: closed } = setup(fake.url, { limiter });
    await closed.describe();
    limiter.close();
    expect(failureOf(await closed.start(start))).toMatchObject({
      kind: 'rate_limited',
      refusal: 'not_now',
      noEffect: true,
    });
    await closed.close();
  });
});
