import type { BrowserContext, Page } from 'playwright-core';
import { vi } from 'vitest';
import { token } from './site.js';

/** What somebody at the page does and sees. */
export class Reader {
  /** What the console said and which errors nobody caught: a page that is well says nothing. */
  readonly complaints: string[] = [];

  private constructor(
    readonly page: Page,
    readonly url: string,
  ) {
    page.on('pageerror', (error) => this.complaints.push(`error: ${error.message}`));
    page.on('console', (message) => {
      // The page asks without a token first; Chromium reports each such answer.
      const asked = /Failed to load resource: the server responded with a status of 4\d\d/.test(
        message.text(),
      );
      if (['error', 'warning'].includes(message.type()) && !asked) this.complaints.push(message.text());
    });
  }

  static async open(context: BrowserContext, url: string, path = '/'): Promise<Reader> {
    const reader = new Reader(await context.newPage(), url);
    reader.page.setDefaultTimeout(20_000);
    await reader.page.goto(url + path);
    return reader;
  }

  /** Types the token where it is asked for, as a person does: the field has the focus already. */
  async signIn(given = token): Promise<void> {
    await this.page.locator('#token:focus').waitFor();
    await this.page.keyboard.type(given);
    await this.page.keyboard.press('Enter');
  }

  async go(hash: string): Promise<void> {
    await this.page.evaluate((to) => {
      location.hash = to;
    }, hash);
  }

  /** All that can be read, in one line. */
  async text(selector = 'main'): Promise<string> {
    // biome-ignore lint/performance/useDomNodeTextContent: what a person sees, with blanks between the parts
    return (await this.page.locator(selector).innerText()).replace(/\s+/g, ' ').trim();
  }

  /** Resolves with all of it once it says so. */
  sees(pattern: RegExp, selector = 'main'): Promise<string> {
    return vi.waitFor(
      async () => {
        const text = await this.text(selector);
        if (!pattern.test(text)) throw new Error(`${pattern} is not to be seen: ${text.slice(0, 1000)}`);
        return text;
      },
      { timeout: 25_000, interval: 100 },
    );
  }

  /** Tab, until the element of that role and name has the focus. Fails when the keyboard does not get there. */
  async tabTo(name: string | RegExp): Promise<void> {
    const seen: string[] = [];
    for (let press = 0; press < 60; press += 1) {
      await this.page.keyboard.press('Tab');
      const focused = await this.page.evaluate(() => {
        const element = document.activeElement;
        if (!(element instanceof HTMLElement)) return { name: '', ring: false };
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        return {
          // biome-ignore lint/performance/useDomNodeTextContent: what a person sees
          name: (element.innerText || element.getAttribute('aria-label') || element.id).trim(),
          ring: outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2,
        };
      });
      seen.push(focused.name);
      if (typeof name === 'string' ? focused.name === name : name.test(focused.name)) {
        if (!focused.ring) throw new Error(`no focus ring on ${focused.name}`);
        return;
      }
    }
    throw new Error(`the keyboard does not reach ${name}; it reached ${[...new Set(seen)].join(', ')}`);
  }

  /** Tabs to a button or link and presses Enter. */
  async press(name: string | RegExp): Promise<void> {
    await this.tabTo(name);
    await this.page.keyboard.press('Enter');
  }
}
