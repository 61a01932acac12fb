import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFileSink } from '../../src/sinks/file.js';
import { openBrowser } from './browser.js';
import { Reader } from './reader.js';
import { openSite, type Site, token } from './site.js';

let site: Site;
let browser: Awaited<ReturnType<typeof openBrowser>>;
let attacker: { server: Server; url: string };

/** Each would be seen: as an element, as a request, as a global, as words out of order. */
const markup = '<img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script><b>bold</b>';
const reversed = '\u202eelbisivni\u202c\u200b\u2066';
const terminal = '\u001b[2J\u001b]0;title\u0007\u0000';
const long = 'W'.repeat(10_000);
const hostile = `${markup} ${reversed} ${terminal} ${long}`;
const template = '{{7*7}} javascript:globalThis.hacked=1';

beforeAll(async () => {
  [site, browser] = await Promise.all([openSite(), openBrowser()]);
  const { bench } = site;
  const job = (sim: object, search: string) => ({ input: { search, sim } });
  await bench.add(
    'message',
    job(
      {
        runSecs: 1,
        items: 2,
        status: 'FAILED',
        statusMessage: `${markup} ${reversed} \u001b[2J ${'W'.repeat(300)}`,
      },
      'a',
    ),
  );
  await bench.add(
    'empty',
    job({ runSecs: 1, items: 0, statusMessage: `${template} ${reversed}${markup}` }, 'b'),
  );
  await Promise.all([bench.outcome('message'), bench.outcome('empty')]);
  // A message of 10 KB as no server may send one: from whoever else writes to Redis.
  const held = JSON.stringify({ reason: 'brake', since: Date.now(), message: hostile });
  await bench.client.hset('{trawl}:tools:apify', `${markup}/x`, held);
  await bench.client.hset(
    '{trawl}:server:apify',
    'held',
    'auth',
    'heldSince',
    Date.now(),
    'heldMessage',
    hostile,
  );
  const sink = createFileSink({ dir: bench.config.results.dir, gzip: false });
  const target = { batch: 'default', id: 'items', attempt: 1, digest: 'd' };
  const lines = [markup, template, reversed, terminal, long].map((text, n) => JSON.stringify({ n, text }));
  await sink.begin(target);
  await sink.writePage(target, { index: 0, offset: 0, lines: [...lines, reversed, '\u202e raw'] });
  const document = await bench.outcome('message');
  await sink.settle(target, {
    ...document,
    id: 'items',
    outcome: 'succeeded',
    message: hostile,
    pages: 1,
    warnings: [hostile, markup],
  });
  attacker = await attackingSite();
}, 120_000);
afterAll(async () => {
  attacker?.server.close();
  await browser?.close();
  await site?.close();
});

/** Somebody else's site, open in the same browser. */
async function attackingSite(): Promise<{ server: Server; url: string }> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>attacker</title>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, url: `http://localhost:${(server.address() as AddressInfo).port}/` };
}

describe('hostile text', () => {
  it.each([
    '/',
    '/#/scrape/default/message',
    '/#/scrape/default/items',
    '/#/items/default/items/0',
    `/#/scrape/default/${encodeURIComponent(markup)}`,
    `/#/${encodeURIComponent(markup)}`,
    '/#/scrape/%ff/%',
    '/#/items/default/items/..%2f..%2foutcome',
  ])('stays text on %s', async (path) => {
    const reader = await Reader.open(browser.context, site.url, path);
    await reader.signIn();
    await reader.page.locator('h1').waitFor();
    await reader.page.waitForTimeout(1_000);
    const seen = await reader.page.evaluate(() => ({
      hacked: 'hacked' in globalThis,
      elements: document.querySelectorAll('main img, main script, main b, main iframe, main [onerror]')
        .length,
      links: [...document.querySelectorAll('a')].map((link) => link.protocol),
      wide: document.documentElement.scrollWidth > innerWidth,
      text: document.body.textContent ?? '',
    }));
    expect({ ...seen, links: [...new Set(seen.links)], text: '' }).toEqual({
      hacked: false,
      elements: 0,
      links: ['http:'],
      wide: false,
      text: '',
    });
    const unseen = [...seen.text].filter((character) => /(?![\n])[\p{Cc}\p{Cf}]/u.test(character));
    expect(unseen).toEqual([]);
    expect(reader.complaints).toEqual([]);
    await reader.page.close();
  });

  it('is shown, shortened where it is a message and whole where it is an item', async () => {
    const reader = await Reader.open(browser.context, site.url);
    await reader.signIn();
    const overview = await reader.sees(/Tool held/);
    expect(overview).toContain('<img src=x onerror=');
    expect(overview).not.toContain(long);
    await reader.go('#/items/default/items/0');
    const items = await reader.sees(/raw/);
    expect(items).toContain(JSON.stringify(markup).slice(1, -1));
    expect(items).toContain(long);
    expect(items).toContain('\\u{202e}elbisivni\\u{202c}\\u{200b}\\u{2066}');
    await reader.page.close();
  });

  it('is served as plain text that no browser acts on', async () => {
    const answer = await fetch(`${site.url}/api/v1/scrapes/default/items/pages/0`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
      'cache-control': 'no-store',
    });
  });
});

describe('another site in the same browser', () => {
  it('can neither change nor read anything, nor frame the page', async () => {
    const reader = await Reader.open(browser.context, site.url);
    await reader.signIn();
    await reader.sees(/Tool held/);
    await reader.go('#/queues');
    await reader.page.getByRole('button', { name: 'Open the queue board' }).click();
    await reader.page.waitForURL(/\/queues\//);
    const page = await browser.context.newPage();
    await page.goto(attacker.url);
    const url = site.url;
    const tried = await page.evaluate(
      async ({ url, token }) => {
        const attempt = async (path: string, init: RequestInit) => {
          try {
            const answer = await fetch(url + path, init);
            return answer.type === 'opaque' ? 'sent, not read' : `read ${answer.status}`;
          } catch {
            return 'failed';
          }
        };
        const frame = document.createElement('iframe');
        frame.src = url;
        document.body.append(frame);
        return [
          await attempt('/api/v1/overview', {}),
          await attempt('/api/v1/overview', { headers: { authorization: `Bearer ${token}` } }),
          await attempt('/api/v1/servers/apify/pause', {
            method: 'POST',
            headers: { authorization: `Bearer ${token}` },
          }),
          await attempt('/api/v1/servers/apify/pause', { method: 'POST', mode: 'no-cors' }),
          await attempt('/queues/api/queues/scrape/pause', { method: 'PUT', credentials: 'include' }),
          await attempt('/queues/api/queues/scrape/add', {
            method: 'POST',
            mode: 'no-cors',
            credentials: 'include',
            body: '{"name":"scrape","data":{}}',
          }),
        ];
      },
      { url, token },
    );
    for (const each of tried) expect(['failed', 'sent, not read']).toContain(each);
    // A form is sent with navigation, which asks nobody.
    await page.evaluate((to) => {
      const form = document.createElement('form');
      form.method = 'post';
      form.action = `${to}/api/v1/servers/apify/pause`;
      document.body.append(form);
      form.submit();
    }, url);
    await page.waitForURL(/\/pause$/);
    expect(await page.locator('body').textContent()).toContain('http_origin_refused');
    const { client, queue } = site.bench;
    expect(await client.hget('{trawl}:server:apify', 'paused')).toBeNull();
    expect(await queue.isPaused()).toBe(false);
    expect(await queue.getJobCountByTypes('waiting', 'delayed')).toBe(0);
    await page.close();
    await reader.page.close();
  });

  it('cannot take our address under its own name (DNS rebinding)', async () => {
    const { port } = new URL(site.url);
    const rebound = await openBrowser({ args: ['--host-resolver-rules=MAP attacker.example 127.0.0.1'] });
    try {
      const reader = await Reader.open(rebound.context, `http://attacker.example:${port}`);
      await reader.sees(/This is not a name under which Trawl may be asked\. .*add the name to http\.names/);
      const answers = await reader.page.evaluate(async (token) => {
        const headers = { authorization: `Bearer ${token}` };
        const ask = async (path: string, method: string) => {
          const answer = await fetch(path, { method, headers });
          return `${answer.status} ${(await answer.json()).error.code}`;
        };
        return [
          await ask('/api/v1/overview', 'GET'),
          await ask('/api/v1/servers/apify/pause', 'POST'),
          await ask('/queues/api/queues', 'GET'),
        ];
      }, token);
      expect(answers).toEqual(Array(3).fill('403 http_host_refused'));
    } finally {
      await rebound.close();
    }
  });
});

describe('the queue board', () => {
  it('opens after the token, and can change the public queue alone', async () => {
    await browser.context.clearCookies();
    const reader = await Reader.open(browser.context, site.url, '/queues/');
    // Led to the page, which asks for the token.
    await reader.signIn();
    await reader.press('Open the queue board');
    await reader.page.waitForURL(/\/queues\//);
    const { page } = reader;
    const writing = /pause|resume|clean|obliterate|add|empty|promote|retry|remove|drain/i;
    const menuOf = async (queue: string) => {
      await page.goto(`${site.url}/queues/queue/${queue}`);
      await page.getByText(queue, { exact: true }).first().waitFor();
      await page.waitForTimeout(1_500);
      const menus = page.locator('main button[aria-haspopup="menu"], button[aria-haspopup="menu"]');
      const names: string[] = [];
      for (let n = 0; n < (await menus.count()); n += 1) {
        if (!(await menus.nth(n).isVisible())) continue;
        await menus
          .nth(n)
          .click({ timeout: 3_000 })
          .catch(() => {});
        names.push(...(await page.getByRole('menuitem').allTextContents()));
        await page.keyboard.press('Escape');
      }
      names.push(
        ...(await page
          .getByRole('button')
          .evaluateAll((all) =>
            all.map(
              (each) =>
                `${each.textContent} ${each.getAttribute('title') ?? ''} ${each.getAttribute('aria-label') ?? ''}`,
            ),
          )),
      );
      return names.filter((name) => writing.test(name));
    };
    expect((await menuOf('scrape')).join()).toMatch(/Pause/);
    for (const queue of ['start-apify', 'poll-apify', 'pages-apify', 'abort-apify']) {
      expect([queue, await menuOf(queue)]).toEqual([queue, []]);
    }
    const answers = await page.evaluate(async () =>
      Promise.all(
        ['pause', 'empty', 'obliterate', 'promote', 'clean/completed', 'add'].map(async (verb) => {
          const method = verb === 'add' ? 'POST' : 'PUT';
          const headers = new Headers(verb === 'add' ? { 'content-type': 'application/json' } : undefined);
          const body = verb === 'add' ? '{"name":"start","data":{},"options":{}}' : null;
          return (await fetch(`/queues/api/queues/start-apify/${verb}`, { method, headers, body })).status;
        }),
      ),
    );
    for (const status of answers) expect(status).toBeGreaterThanOrEqual(400);
    expect(await site.bench.client.hget('{trawl}:start-apify:meta', 'paused')).toBeNull();
    // Its own files load under its policy; the font from elsewhere is refused, and it does without.
    const others = reader.complaints.filter((each) => !each.includes('fonts.googleapis.com'));
    expect(others.filter((each) => /Content Security Policy|error:/.test(each))).toEqual([]);
    // Signing out closes it.
    await page.goto(site.url);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.locator('#token').waitFor();
    await page.goto(`${site.url}/queues/`);
    await page.waitForURL(/\/#\/queues$/);
    await page.close();
  });

  it('shows jobs without the secrets of the configuration', async () => {
    const { bench } = site;
    const secret = 'test-token-canary';
    await bench.queue.add(
      'scrape',
      { tool: 'nobody/tool', input: { password: secret } },
      { jobId: 'default.leaky', delay: 3_600_000 },
    );
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(
      `${site.url}/queues/api/queues?activeQueue=scrape&status=delayed&page=1&jobsPerPage=10`,
      { headers },
    );
    const body = await answer.text();
    expect(body).toContain('default.leaky');
    expect(body).toContain('[secret]');
    expect(body).not.toContain(secret);
  });
});
