import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiStatus } from '../../src/http/api/errors.js';
import { openSite, type Site, token } from './site.js';

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
  /** Of a refusal. */
  readonly code: string;
}

/** A request with whatever headers, as no browser and no `fetch` would send it. */
async function ask(
  url: string,
  path: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const answer = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    request(new URL(path, url), { method, headers, agent: false })
      .on('response', resolve)
      .on('error', reject)
      .end();
  });
  const body = await text(answer);
  const code = /^\{"error":\{"code":"(\w+)"/.exec(body)?.[1] ?? '';
  return { status: answer.statusCode ?? 0, headers: answer.headers, body, code };
}

const bearer = { authorization: `Bearer ${token}` };
const looks = [
  '/api/v1/overview',
  '/api/v1/scrapes',
  '/api/v1/problems',
  '/api/v1/scrapes/default/a',
  '/api/v1/scrapes/default/a/pages',
];
const items = ['/api/v1/scrapes/default/a/pages/0', '/queues', '/queues/', '/queues/api/queues'];
const changes = [
  '/api/v1/scrapes/default/a/cancel',
  '/api/v1/scrapes/default/a/retry',
  '/api/v1/servers/apify/pause',
  '/api/v1/servers/apify/resume',
  '/api/v1/board',
];

describe('with a token', () => {
  let site: Site;
  beforeAll(async () => {
    site = await openSite();
  });
  afterAll(() => site?.close());

  it.each([...looks, ...items])('GET %s needs it', async (path) => {
    const without = await ask(site.url, path);
    expect([without.status, without.code]).toEqual([401, 'http_token_missing']);
    expect(without.headers['www-authenticate']).toBe('Bearer realm="trawl"');
  });

  it.each(changes)('POST %s needs it', async (path) => {
    expect((await ask(site.url, path, { method: 'POST' })).status).toBe(401);
    // Where a token might stand as well, none is looked for.
    for (const at of [`${path}?token=${token}`, `${path}?access_token=${token}`]) {
      expect((await ask(site.url, at, { method: 'POST' })).status).toBe(401);
    }
    expect(await site.bench.client.hget('{trawl}:server:apify', 'paused')).toBeNull();
  });

  it('answers whoever has it, and other sites cannot read the answer', async () => {
    const { status, headers, body } = await ask(site.url, '/api/v1/overview', { headers: bearer });
    expect(status).toBe(200);
    expect(JSON.parse(body)).toMatchObject({
      worker: true,
      writing: true,
      servers: [{ name: 'apify', runSlots: 20 }],
    });
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    });
    expect(headers['access-control-allow-origin']).toBeUndefined();
  });

  it.each([
    'attacker.example',
    'attacker.example:9464',
    '127.0.0.1.attacker.example',
    'localhost.attacker.example',
    'a b',
    '[::1',
  ])('refuses the host %j: a name that somebody points at this machine', async (host) => {
    for (const path of ['/api/v1/overview', '/queues/api/queues']) {
      const answer = await ask(site.url, path, { headers: { ...bearer, host } });
      // Without a host, and with one that is none, the server does not get so far.
      if (answer.status !== 400) expect([answer.status, answer.code]).toEqual([403, 'http_host_refused']);
    }
  });

  it.each(['localhost', '127.0.0.1', '[::1]:9464', '192.168.1.5:80', 'LOCALHOST:1'])(
    'takes the host %s',
    async (host) => {
      expect((await ask(site.url, '/api/v1/overview', { headers: { ...bearer, host } })).status).toBe(200);
    },
  );

  it.each([
    { origin: 'https://attacker.example' },
    { origin: 'null' },
    { origin: 'http://localhost:1' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ] as Record<string, string>[])(
    'refuses a request that the page of another origin causes: %j',
    async (headers) => {
      for (const path of changes) {
        const answer = await ask(site.url, path, {
          method: 'POST',
          headers: { ...bearer, ...headers },
        });
        expect([answer.status, answer.code]).toEqual([403, 'http_origin_refused']);
      }
      const cookie = cookieOf(await ask(site.url, '/api/v1/board', { method: 'POST', headers: bearer }));
      const board = await ask(site.url, '/queues/api/queues/scrape/pause', {
        method: 'PUT',
        headers: { cookie, ...headers },
      });
      expect([board.status, board.code]).toEqual([403, 'http_origin_refused']);
    },
  );

  it('takes its own origin, also when a proxy speaks TLS for it', async () => {
    const { host } = new URL(site.url);
    for (const origin of [`http://${host}`, `https://${host}`]) {
      const answer = await ask(site.url, '/api/v1/servers/apify/resume', {
        method: 'POST',
        headers: { ...bearer, origin },
      });
      expect([answer.status, JSON.parse(answer.body).result]).toEqual([200, 'unchanged']);
    }
  });

  it.each([
    ['GET', '/api/v1/scrapes?state=all', 400, 'usage_invalid'],
    ['GET', '/api/v1/scrapes?limit=101', 400, 'usage_invalid'],
    ['GET', '/api/v1/scrapes?cursor=../../etc', 400, 'usage_invalid'],
    ['GET', '/api/v1/problems?class=failure&cursor=1', 400, 'usage_invalid'],
    ['GET', '/api/v1/problems?class=warning&cursor=%2B', 400, 'usage_invalid'],
    ['GET', '/api/v1/scrapes/default/..%2f..%2fetc', 400, 'usage_invalid'],
    ['GET', '/api/v1/scrapes/%252e%252e/a', 400, 'usage_invalid'],
    ['GET', '/api/v1/scrapes/default/a*', 400, 'usage_invalid'],
    ['GET', '/api/v1/scrapes/default/nobody', 404, 'scrape_unknown'],
    ['GET', '/api/v1/scrapes/default/nobody/pages/0', 404, 'page_unknown'],
    ['GET', '/api/v1/scrapes/default/a/pages/-1', 400, 'usage_invalid'],
    ['GET', '/api/v1/scrapes/default/a/pages/0?offset=1e9', 400, 'usage_invalid'],
    ['POST', '/api/v1/scrapes/default/nobody/cancel', 404, 'scrape_unknown'],
    ['POST', '/api/v1/scrapes/default/nobody/retry', 404, 'scrape_unknown'],
    ['POST', '/api/v1/servers/nobody/pause', 404, 'server_unknown'],
    ['POST', '/api/v1/servers/__proto__/pause', 404, 'server_unknown'],
    ['GET', '/api/v1/nothing', 404, 'usage_invalid'],
    ['DELETE', '/api/v1/scrapes/default/a', 404, 'usage_invalid'],
  ])('%s %s is %d %s', async (method, path, status, code) => {
    const answer = await ask(site.url, path, { method, headers: bearer });
    expect([answer.status, answer.code]).toEqual([status, code]);
    expect(answer.body).not.toMatch(/node_modules|\.ts:|\/tmp/);
  });

  it.each([[{ attempt: 0 }], [{ attempt: '1' }], [{ attempts: 1 }], [[]], ['x']])(
    'refuses to try again for the body %j',
    async (body) => {
      const answer = await fetch(`${site.url}/api/v1/scrapes/default/nobody/retry`, {
        method: 'POST',
        headers: { ...bearer, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      expect(answer.status).toBe(400);
    },
  );

  it('takes the tool to pause from the body, as it may be written, and no other', async () => {
    const post = (verb: string, body: unknown) =>
      fetch(`${site.url}/api/v1/servers/apify/${verb}`, {
        method: 'POST',
        headers: { ...bearer, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    expect(await (await post('pause', { tool: 'trudax--yellow-pages-us-scraper' })).json()).toEqual({
      result: 'paused',
      message: 'Paused apify/trudax/yellow-pages-us-scraper.',
    });
    expect((await post('resume', { tool: 'trudax/yellow-pages-us-scraper' })).status).toBe(200);
    for (const body of [{ tool: 'nobody/tool' }, { tool: 7 }, { tools: [] }, [], 'x']) {
      const answer = await post('pause', body);
      expect([body, answer.status]).toEqual([body, 400]);
    }
    expect(await site.bench.client.hgetall('{trawl}:tools:apify')).toEqual({});
  });

  it('opens the board by a cookie that the token brings, and by no other', async () => {
    const got = await ask(site.url, '/api/v1/board', { method: 'POST', headers: bearer });
    expect(String(got.headers['set-cookie'])).toMatch(
      /^trawl_queues=[^;]+; Max-Age=3600; Path=\/queues; HttpOnly; SameSite=Strict$/,
    );
    const cookie = cookieOf(got);
    expect(cookie).not.toContain(token);
    expect((await ask(site.url, '/queues/', { headers: { cookie } })).status).toBe(200);
    const [, value = ''] = cookie.split('=', 2);
    const [, mac = ''] = /\.(.+)$/.exec(value) ?? [];
    const forged = [
      `trawl_queues=${Date.now() + 60_000}.${mac}`,
      `trawl_queues=${Date.now() + 60_000}`,
      `trawl_queues=${value.slice(0, -2)}`,
      'trawl_queues=',
      `trawl_queues=${'9'.repeat(500)}`,
      `trawl_queues=${encodeURIComponent(token)}`,
    ];
    for (const each of forged) {
      expect([each, (await ask(site.url, '/queues/', { headers: { cookie: each } })).status]).toEqual([
        each,
        401,
      ]);
    }
    // The API itself takes no cookie: a browser would send it by itself.
    expect((await ask(site.url, '/api/v1/overview', { headers: { cookie } })).status).toBe(401);
  });

  it('leads somebody who opens the board without one to the page', async () => {
    const answer = await ask(site.url, '/queues/', {
      headers: { 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'cross-site' },
    });
    expect([answer.status, answer.headers.location]).toEqual([303, '/#/queues']);
  });

  it('serves the page to anybody, with a policy that allows nothing but its own files', async () => {
    const { status, headers, body } = await ask(site.url, '/');
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toMatch(/unsafe|\*|data:/);
    expect(body).not.toMatch(/<script>|<style|style=|\son\w+=|<script(?! type="module" src="\/page\/)/);
    for (const path of ['/page/main.js', '/page/page.css', '/page/icon.svg']) {
      expect((await ask(site.url, path)).headers['x-content-type-options']).toBe('nosniff');
    }
    for (const path of ['/page/..%2fserver.js', '/page/../access.js', '/page/', '/page/nothing.js']) {
      expect((await ask(site.url, path)).status).toBe(404);
    }
  });

  it('leaves metrics and health as they are', async () => {
    for (const path of ['/metrics', '/healthz', '/readyz']) {
      expect((await ask(site.url, path, { headers: { host: 'prometheus.example' } })).status).toBe(200);
    }
  });

  it('logs what was changed, and never the token', async () => {
    await ask(site.url, '/api/v1/servers/apify/pause', { method: 'POST', headers: bearer });
    await ask(site.url, '/api/v1/servers/apify/resume', { method: 'POST', headers: bearer });
    const changed = site.logged.filter(({ event, tool }) => event === 'http.changed' && tool === null);
    expect(changed.slice(-2)).toMatchObject([
      { action: 'pause', server: 'apify', result: 'paused' },
      { action: 'resume', server: 'apify', result: 'resumed' },
    ]);
    expect(JSON.stringify(site.logged)).not.toContain(token);
  });

  // Last: nobody is let in for a minute after it.
  it('refuses wrong tokens, and after ten of them looks at none', async () => {
    const wrong = ['x', `${token}x`, token.slice(1), token.toUpperCase(), 'é'];
    const statuses: number[] = [];
    for (let round = 0; round < 12; round += 1) {
      const authorization = `Bearer ${wrong[round % 4]}`;
      statuses.push((await ask(site.url, '/api/v1/overview', { headers: { authorization } })).status);
    }
    expect(statuses).toEqual([...Array(10).fill(401), 429, 429]);
    const right = await ask(site.url, '/api/v1/overview', { headers: bearer });
    expect([right.status, right.code]).toEqual([429, 'http_too_many']);
    expect(right.body).toMatch(/Try again in \d+ s/);
    // Nobody is believed to come from somewhere else.
    const elsewhere = { ...bearer, 'x-forwarded-for': '203.0.113.7' };
    expect((await ask(site.url, '/api/v1/overview', { headers: elsewhere })).status).toBe(429);
    const refused = site.logged.filter(({ event }) => event === 'http.token_refused');
    expect(refused).toHaveLength(10);
    expect(JSON.stringify(refused)).not.toContain(token.slice(1));
  });
});

describe('behind a proxy that is trusted', () => {
  let site: Site;
  beforeAll(async () => {
    site = await openSite({
      config: { http: { port: 0, token, trustedProxies: ['10.9.0.0/16', '127.0.0.1'] } },
    });
  });
  afterAll(() => site?.close());

  const from = async (forwarded: string, authorization: string) =>
    (
      await ask(site.url, '/api/v1/overview', {
        headers: { authorization, 'x-forwarded-for': forwarded },
      })
    ).status;

  it('counts wrong tokens by whom it says they come from, and only by its own word', async () => {
    for (let round = 0; round < 10; round += 1) {
      // What the proxy was told stands left of what it saw; another proxy of ours may stand between.
      const forwarded = `198.51.100.${round}, 203.0.113.7${round % 2 === 0 ? ', 10.9.1.1' : ''}`;
      expect(await from(forwarded, 'Bearer wrong')).toBe(401);
    }
    expect(await from('203.0.113.7', bearer.authorization)).toBe(429);
    expect(await from('203.0.113.8', bearer.authorization)).toBe(200);
    expect((await ask(site.url, '/api/v1/overview', { headers: bearer })).status).toBe(200);
    const refused = site.logged.filter(({ event }) => event === 'http.token_refused');
    expect(new Set(refused.map(({ address }) => address))).toEqual(new Set(['203.0.113.7']));
  });

  it('counts as the proxy itself what is no address', async () => {
    for (let round = 0; round < 10; round += 1) await from(`nobody-${round}`, 'Bearer wrong');
    expect(await from('nobody', bearer.authorization)).toBe(429);
  });
});

describe('while Redis does not answer', () => {
  let site: Site;
  beforeAll(async () => {
    site = await openSite();
  });
  afterAll(() => site?.close());

  it('says of a change that it may still be made, as it is', { timeout: 40_000 }, async () => {
    site.bench.redis.signal('SIGSTOP');
    const [look, change] = await Promise.all([
      ask(site.url, '/api/v1/overview', { headers: bearer }),
      ask(site.url, '/api/v1/servers/apify/pause', { method: 'POST', headers: bearer }),
    ]);
    site.bench.redis.signal('SIGCONT');
    expect([look.status, change.status]).toEqual([503, 503]);
    expect(look.body).toMatch(/nothing can be looked up/);
    expect(change.body).toMatch(/may have been made, or may be made when it is back/);
    const paused = () => site.bench.client.hget('{trawl}:server:apify', 'paused');
    await expect.poll(paused, { timeout: 5_000 }).not.toBeNull();
  });
});

describe('without a token', () => {
  let site: Site;
  beforeAll(async () => {
    site = await openSite({ config: { http: { port: 0 } } });
  });
  afterAll(() => site?.close());

  it('shows how things stand to this machine', async () => {
    const answer = await ask(site.url, '/api/v1/overview');
    expect([answer.status, JSON.parse(answer.body).writing]).toEqual([200, false]);
    expect(
      (await ask(site.url, '/api/v1/overview', { headers: { 'sec-fetch-site': 'cross-site' } })).status,
    ).toBe(403);
  });

  it.each([
    ...changes.map((path) => ['POST', path] as const),
    ...items.map((path) => ['GET', path] as const),
  ])('%s %s is off, and says how to switch it on', async (method, path) => {
    for (const headers of [{}, bearer]) {
      const answer = await ask(site.url, path, { method, headers });
      expect([answer.status, answer.code]).toEqual([403, 'http_token_unset']);
      expect(answer.body).toContain('Set http.token in trawl.yaml, or TRAWL_HTTP__TOKEN in its environment');
    }
  });
});

describe('beyond this machine', () => {
  it('nothing is shown without a token', async () => {
    const site = await openSite({ config: { http: { port: 0, host: '0.0.0.0' } } });
    try {
      const url = `http://127.0.0.1:${new URL(site.url).port}`;
      for (const path of looks) expect((await ask(url, path)).code).toBe('http_token_unset');
      expect((await ask(url, '/')).status).toBe(200);
    } finally {
      await site.close();
    }
  });

  it('a name that is configured is taken', async () => {
    const site = await openSite({ config: { http: { port: 0, token, names: ['Trawl.example'] } } });
    try {
      const at = (host: string) => ask(site.url, '/api/v1/overview', { headers: { ...bearer, host } });
      expect((await at('trawl.example')).status).toBe(200);
      expect((await at('other.trawl.example')).status).toBe(403);
    } finally {
      await site.close();
    }
  });
});

it('docs/errors.md names the status of each code of the API', async () => {
  const { readFileSync } = await import('node:fs');
  const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `(\w+)` \| (\d{3}) \|$/gm)];
  expect(Object.fromEntries(rows.map((row) => [row[1], Number(row[2])]))).toEqual(apiStatus);
});

function cookieOf(answer: Answer): string {
  return String(answer.headers['set-cookie']).split(';')[0] ?? '';
}
