import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openBrowser } from './browser.js';
import { Reader } from './reader.js';
import { openSite, type Site, token } from './site.js';

let site: Site;
let browser: Awaited<ReturnType<typeof openBrowser>>;
let context: BrowserContext;

const job = (sim: object, search: string) => ({ input: { search, sim } });

beforeAll(async () => {
  [site, browser] = await Promise.all([openSite({ limits: { runs: 5 } }), openBrowser()]);
  context = browser.context;
  const { bench } = site;
  await bench.add('quick', job({ runSecs: 6, items: 1200, itemBytes: 900 }, 'quick'));
  await bench.add(
    'nothing',
    job({ runSecs: 1, items: 0, statusMessage: 'No results for this search' }, 'nothing'),
  );
  await bench.add(
    'broken',
    job({ runSecs: 1, items: 3, status: 'FAILED', statusMessage: 'The layout changed' }, 'broken'),
  );
  await bench.add('refused', { input: { search: 'x', maxItems: 'many' } });
  await Promise.all(['quick', 'nothing', 'broken', 'refused'].map((id) => bench.outcome(id)));
  // Five take the slots before the others come to wait for one.
  for (let n = 0; n < 5; n += 1)
    await bench.add(`slow-${n}`, job({ runSecs: 600, items: 5000 }, `slow-${n}`));
  const polled = () => bench.client.zcard('{trawl}:poll-apify:delayed');
  await vi.waitFor(async () => expect(await polled()).toBe(5), 30_000);
  for (let n = 0; n < 25; n += 1) await bench.add(`next-${n}`, job({ runSecs: 600 }, `next-${n}`));
  const waiting = () => bench.client.zcard('{trawl}:start-apify:prioritized');
  await vi.waitFor(async () => expect(await waiting()).toBe(25), 30_000);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await site?.close();
});

/** Opens the page in a tab of its own and signs in. */
async function signedIn(path = '/'): Promise<Reader> {
  const reader = await Reader.open(context, site.url, path);
  await reader.signIn();
  return reader;
}

describe('the page', () => {
  it('shows servers, scrapes in progress, failures and warnings of real runs', async () => {
    const reader = await signedIn();
    await reader.sees(/5 of 5 run slots held/);
    const text = await reader.sees(/default\.slow-0/);
    expect(text).toMatch(/running 5 reading items 0 waiting 25 not looked at yet 0/);
    expect(text).toMatch(/apify ok 5 of 5 run slots held 25 waiting Pause apify/);
    expect(text).toMatch(/default\.slow-0 running trudax\/yellow-pages-us-scraper · for \d+ s/);
    expect(text).toMatch(
      /Failures default\.broken failed \d+ s ago The run ended FAILED after \d+s; its 3 items were kept\. It said: "The layout changed"\./,
    );
    expect(text).toMatch(
      /default\.refused rejected .* The input does not fit the tool's schema: \/maxItems: must be integer/,
    );
    expect(text).toMatch(/Warnings default\.nothing empty .* It said: "No results for this search"/);
    expect(reader.complaints).toEqual([]);
    await reader.page.close();
  });

  it('pages through what waits', async () => {
    const reader = await signedIn();
    await reader.sees(/default\.slow-0/);
    await reader.page.getByRole('radio', { name: 'Waiting' }).check();
    const rows = reader.page.getByRole('list', { name: 'Scrapes in progress' }).getByRole('link');
    await expect.poll(() => rows.count()).toBe(20);
    const first = await rows.allInnerTexts();
    await reader.page.getByRole('button', { name: 'Next' }).first().click();
    await expect.poll(() => rows.count()).toBe(5);
    const second = await rows.allInnerTexts();
    const all = Array.from({ length: 25 }, (_, n) => `default.next-${n}`);
    expect([...first, ...second].sort()).toEqual(all.sort());
    await reader.page.getByRole('button', { name: 'First page' }).first().click();
    await expect.poll(() => rows.count()).toBe(20);
    await reader.page.close();
  });

  it('tells what happened to a scrape and when, and shows its items as they are stored', async () => {
    const reader = await signedIn('/#/scrape/default/quick');
    await reader.sees(/Settled/);
    const what = await reader.page.locator('.timeline li span').allInnerTexts();
    expect(what[0]).toBe('Submitted to the queue');
    expect(what[1]).toBe('Run started');
    expect(what.filter((each) => each.startsWith('Poll: '))).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^Poll: running, [\d,]+ items?$/),
        'Poll: succeeded, 1,200 items',
      ]),
    );
    const pages = what.filter((each) => /^Page \d+ written, [\d.]+ kB$/.test(each));
    expect(pages.length).toBeGreaterThan(1);
    expect(what.at(-1)).toBe('Settled');
    const times = await reader.page
      .locator('.timeline time')
      .evaluateAll((all) => all.map((time) => (time as HTMLTimeElement).dateTime));
    const seconds = times.map((time) => Math.floor(Date.parse(time) / 1000));
    expect(seconds).toEqual(seconds.toSorted((a, b) => a - b));
    const document = await site.bench.outcome('quick');
    expect(times[1]).toBe(document.startedAt);
    expect(await reader.text()).toMatch(
      new RegExp(`Polls ${document.polls} Took .* Results ${document.destination}`),
    );

    await reader.page.getByRole('link', { name: 'Page 1', exact: true }).click();
    const stored = readFileSync(`${site.bench.resultsOf('quick')}/page-000001.ndjson`, 'utf8')
      .trimEnd()
      .split('\n');
    const items = reader.page.locator('pre .item');
    await items.first().waitFor();
    expect(await items.first().textContent()).toBe(stored[0]);
    while (await reader.page.getByRole('button', { name: 'More' }).isVisible()) {
      await reader.page.getByRole('button', { name: 'More' }).click();
      await reader.page.waitForTimeout(100);
    }
    expect(await items.allTextContents()).toEqual(stored);
    expect(reader.complaints).toEqual([]);
    await reader.page.close();
  });

  it('keeps the token in the tab alone, and asks again in another', async () => {
    const reader = await signedIn();
    await reader.sees(/default\.slow-0/);
    const places = await reader.page.evaluate(() => [
      JSON.stringify(localStorage),
      document.cookie,
      location.href,
    ]);
    expect(places.join()).not.toContain(token);
    expect(JSON.stringify(await context.cookies())).not.toContain(token);
    const other = await Reader.open(context, site.url);
    await other.page.locator('#token').waitFor();
    expect(await other.text()).not.toContain('slow-0');
    await other.page.close();
    await reader.page.getByRole('button', { name: 'Sign out' }).click();
    await reader.page.locator('#token').waitFor();
    expect(await reader.text()).not.toContain('slow-0');
    await reader.page.close();
  });

  it('says that a token is wrong, and takes the right one', async () => {
    const reader = await Reader.open(context, site.url);
    await reader.signIn('not-the-token-at-all');
    await reader.sees(/That is not the token of http\.token\. Try again\./);
    await reader.signIn();
    await reader.sees(/default\.slow-0/);
    await reader.page.close();
  });

  it('looks again by itself, and not while nobody can see it', async () => {
    const reader = await signedIn();
    await reader.sees(/default\.slow-0/);
    const asked: string[] = [];
    reader.page.on('request', (request) => asked.push(request.url()));
    await expect.poll(() => asked.length, { timeout: 15_000 }).toBeGreaterThan(3);
    const visibility = (state: string) =>
      reader.page.evaluate((value) => {
        Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => value });
        document.dispatchEvent(new Event('visibilitychange'));
      }, state);
    await visibility('hidden');
    await reader.page.waitForLoadState('networkidle');
    asked.length = 0;
    await reader.page.waitForTimeout(7_000);
    expect(asked).toEqual([]);
    await visibility('visible');
    await expect.poll(() => asked.length, { timeout: 3_000 }).toBeGreaterThan(0);
    await reader.page.close();
  });
});

describe('with the keyboard alone', () => {
  it('pauses a server and resumes it', async () => {
    const reader = await signedIn();
    await reader.sees(/Pause apify/);
    await reader.press('Pause apify');
    await reader.sees(/^Paused apify\.$/, '#notice');
    await reader.sees(/Paused by an operator since \d\d:\d\d:\d\d/);
    expect(await site.bench.client.hget('{trawl}:server:apify', 'paused')).toMatch(/^\d+$/);
    // The focus stays on the button, which resumes now.
    expect(await reader.page.evaluate(() => document.activeElement?.textContent)).toBe('Resume apify');
    await reader.page.keyboard.press('Enter');
    await reader.sees(/^Resumed apify\.$/, '#notice');
    expect(await site.bench.client.hget('{trawl}:server:apify', 'paused')).toBeNull();
    await reader.page.close();
  });

  it('resumes a tool that was paused elsewhere', async () => {
    const { holds } = site.worker.daemon.ctx;
    await holds.pause('apify', 'compass/crawler-google-places', Date.now());
    const reader = await signedIn();
    await reader.sees(/a tool is stopped/);
    await reader.press('Resume compass/crawler-google-places');
    await reader.sees(/^Resumed apify\/compass\/crawler-google-places\.$/, '#notice');
    await reader.sees(/apify ok/);
    expect((await holds.state('apify')).tools).toEqual({});
    await reader.page.close();
  });

  it('cancels a scrape, after a question that Escape says no to', async () => {
    const reader = await signedIn();
    await reader.sees(/default\.slow-1/);
    await reader.press('default.slow-1');
    await reader.sees(/Run started/);
    await reader.press('Cancel');
    await reader.sees(/Cancel default\.slow-1\?/, 'dialog');
    await reader.page.keyboard.press('Escape');
    await reader.page.locator('dialog').waitFor({ state: 'hidden' });
    expect((await site.bench.queue.getJob('default.slow-1'))?.failedReason).toBeUndefined();
    // Back where it was.
    expect(await reader.page.evaluate(() => document.activeElement?.textContent)).toBe('Cancel');
    await reader.page.keyboard.press('Enter');
    await reader.press('Cancel the scrape');
    await reader.sees(/^Cancelling default\.slow-1; its run is aborted\.$/, '#notice');
    expect(await site.bench.outcome('slow-1')).toMatchObject({ outcome: 'cancelled' });
    await reader.sees(/default\.slow-1 cancelled/);
    expect(reader.complaints).toEqual([]);
    await reader.page.close();
  });

  it('tries a failed scrape again', async () => {
    const reader = await signedIn('/#/scrape/default/broken');
    await reader.sees(/The layout changed/);
    await reader.press('Try again');
    await reader.press(/^Try again$/);
    await reader.sees(/^Trying default\.broken again: attempt 2\.$/, '#notice');
    await reader.sees(/Attempt 2/);
    // All slots are taken: it waits in the queue.
    expect(await (await site.bench.queue.getJob('default.broken'))?.getState()).toBe('waiting-children');
    // Who lost the answer asks again, for the attempt that it saw.
    const repeat = await fetch(`${site.url}/api/v1/scrapes/default/broken/retry`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{"attempt":1}',
    });
    expect(await repeat.json()).toEqual({
      result: 'superseded',
      message: 'Attempt 1 of default.broken was tried again already; its last is 2.',
    });
    await reader.page.close();
  });

  it('skips to the content, and a new view has the focus on its heading', async () => {
    const reader = await signedIn();
    await reader.sees(/default\.refused/);
    await reader.page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    await reader.press('Skip to the content');
    await reader.press('default.refused');
    await reader.sees(/Timeline/);
    expect(await reader.page.evaluate(() => document.activeElement?.tagName)).toBe('H1');
    await reader.page.close();
  });
});

describe('for everybody', () => {
  const views = ['/', '/#/scrape/default/quick', '/#/items/default/quick/0', '/#/queues'];
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

  it.each(['light', 'dark'] as const)('nothing that axe complains of, %s', async (colorScheme) => {
    const reader = await signedIn();
    await reader.page.emulateMedia({ colorScheme });
    for (const view of views) {
      await reader.go(view.slice(1));
      await reader.page.locator('h1').waitFor();
      await reader.page.waitForTimeout(500);
      await reader.page.evaluate(axe);
      const found = await reader.page.evaluate(async () => {
        const { violations } = await (
          window as unknown as {
            axe: {
              run(): Promise<{
                violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[];
              }>;
            };
          }
        ).axe.run();
        return violations.map(
          ({ id, nodes }) =>
            `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`,
        );
      });
      expect([view, found]).toEqual([view, []]);
    }
    await reader.page.close();
  });

  it('readable on a phone: no sideways scrolling, things to tap are large', async () => {
    const phone = await openBrowser({
      viewport: { width: 390, height: 844 },
      isMobile: true,
      hasTouch: true,
      deviceScaleFactor: 2,
    });
    try {
      const reader = await Reader.open(phone.context, site.url);
      await reader.signIn();
      await reader.sees(/default\.slow-2/);
      for (const view of views) {
        await reader.go(view.slice(1));
        await reader.page.waitForTimeout(800);
        const wide = await reader.page.evaluate(() => document.documentElement.scrollWidth);
        expect([view, wide]).toEqual([view, 390]);
        const small = await reader.page.evaluate(() =>
          [...document.querySelectorAll('a, button, label')]
            .filter((element) => !element.matches('.skip'))
            .map((element) => ({ text: element.textContent, box: element.getBoundingClientRect() }))
            .filter(({ box }) => box.height > 0 && (box.height < 44 || box.width < 24))
            .map(({ text, box }) => `${text} ${box.width}×${box.height}`),
        );
        expect([view, small]).toEqual([view, []]);
        const tiny = await reader.page.evaluate(() =>
          [...document.querySelectorAll('main *')]
            .filter((element) => element.childElementCount === 0 && element.textContent?.trim())
            .filter((element) => Number.parseFloat(getComputedStyle(element).fontSize) < 13)
            .map((element) => element.textContent),
        );
        expect([view, tiny]).toEqual([view, []]);
      }
      expect(reader.complaints).toEqual([]);
    } finally {
      await phone.close();
    }
  });
});
