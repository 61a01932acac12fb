import { connect } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import pino from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { fetchCheck, type HealthSource, healthSource, redisCheck } from '../../src/http/health.js';
import { createHttpServer, type HttpServerOptions } from '../../src/http/server.js';
import { createMetrics } from '../../src/metrics/index.js';

const good: HealthSource = healthSource({ process: async () => ({ ok: true, message: 'runs' }) });
const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()));
});

async function serve(more: Partial<HttpServerOptions> = {}) {
  const logged: string[] = [];
  const log = pino({}, { write: (line: string) => logged.push(line) });
  const metrics = createMetrics({ version: '0.1.0', servers: { apify: { tools: ['user/tool'] } } });
  const health = { live: good, ready: good };
  const server = await createHttpServer({ host: '127.0.0.1', port: 0, metrics, health, log, ...more });
  opened.push(server);
  return { ...server, logged, metrics };
}

/** Sends bytes as they are and returns all that comes back until the server closes. */
async function raw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(bytes);
  return readText(socket).catch(() => '');
}

describe('http server', () => {
  it('serves the metrics as Prometheus reads them', async () => {
    const { url, metrics } = await serve();
    metrics.scrapeSettled('apify', 'user/tool', 'empty');
    const answer = await fetch(`${url}/metrics`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(await answer.text()).toContain(
      'trawl_scrapes_settled_total{server="apify",tool="user/tool",outcome="empty"} 1',
    );
  });

  it('says what is wrong, on each path from its own checks', async () => {
    const ready = healthSource({
      redis: redisCheck(() => Promise.reject(new Error('connect ECONNREFUSED redis://user:secret@host'))),
      fetch: async () => ({ ok: true, message: 'fine' }),
    });
    const { url } = await serve({ health: { live: good, ready } });
    const answer = await fetch(`${url}/readyz`);
    expect(answer.status).toBe(503);
    expect(await answer.json()).toEqual({
      ok: false,
      checks: { redis: { ok: false, message: 'does not answer' }, fetch: { ok: true, message: 'fine' } },
    });
    const live = await fetch(`${url}/healthz`);
    expect([live.status, await live.json()]).toEqual([
      200,
      { ok: true, checks: { process: { ok: true, message: 'runs' } } },
    ]);
  });

  it.each(['/metrics', '/healthz', '/nothing-here'])('puts the security headers on %s', async (path) => {
    const { url } = await serve();
    const { headers } = await fetch(url + path);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('tells nothing of its insides when something throws, but logs it', async () => {
    const metrics = {
      contentType: 'text/plain',
      text: () => Promise.reject(new Error('secret at /home/x/index.ts')),
    };
    const { url, logged } = await serve({ metrics });
    const answer = await fetch(`${url}/metrics`);
    expect([answer.status, await answer.json()]).toEqual([500, { error: 'internal error' }]);
    expect(logged.join()).toContain('secret at');
  });

  it.each([
    ['GET', '/%00', 404],
    ['GET', `/${'a'.repeat(4000)}`, 404],
    ['GET', '/../../etc/passwd', 404],
    ['POST', '/metrics', 404],
    ['GET', '/%ff', 400],
  ])('%s %s is answered without a stack', async (method, path, status) => {
    const { url } = await serve();
    const answer = await raw(url, `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).not.toMatch(/node_modules|\.ts:|\bat /);
  });

  it('bounds headers and bodies', async () => {
    const { url } = await serve({
      mounts: [async (app) => void app.post('/echo', async (request) => ({ got: request.body }))],
    });
    const long = await raw(url, `GET /metrics HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(20_000)}\r\n\r\n`);
    expect(long).toMatch(/^HTTP\/1.1 431 /);
    const post = (size: number) =>
      fetch(`${url}/echo`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify('x'.repeat(size)),
      });
    expect((await post(10)).status).toBe(200);
    expect((await post(100_000)).status).toBe(413);
  });

  it('says what to do when the port is taken', async () => {
    const { url } = await serve();
    const taken = serve({ port: Number(new URL(url).port) });
    await expect(taken).rejects.toMatchObject({
      code: 'http_listen_failed',
      exitCode: 2,
      message: expect.stringContaining('another program'),
      hint: expect.stringContaining('http.port'),
    });
  });

  it('closes with connections kept alive', async () => {
    const server = await serve();
    await (await fetch(`${server.url}/healthz`)).text();
    await server.close();
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow();
  });
});

describe('health checks', () => {
  it('count a check that throws or hangs as failed', async () => {
    const report = await healthSource({
      throws: async () => {
        throw new Error('password=secret');
      },
      hangs: () => new Promise(() => undefined),
    }).check();
    expect(report).toEqual({
      ok: false,
      checks: {
        throws: { ok: false, message: 'the check failed; see the log' },
        hangs: { ok: false, message: 'no answer within 2 s' },
      },
    });
  });

  it.each([
    [[], true, 'every queue was fetched from lately'],
    [[['scrape', 95_000]], true, 'every queue was fetched from lately'],
    [
      [
        ['scrape', 95_000],
        ['poll-apify', 10_000],
      ],
      false,
      'poll-apify not fetched from for 90 s',
    ],
  ] as const)('last fetches %j', async (fetched, ok, message) => {
    const lastFetch = () => new Map<string, number>(fetched);
    const check = fetchCheck({ lastFetch, now: () => 100_000, maxAgeMs: 60_000 });
    expect(await check()).toEqual({ ok, message });
  });
});
