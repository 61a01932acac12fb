import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type BrowserContext, chromium } from 'playwright-core';

/** Names of Chromium on the PATH, the first that is there is taken. */
export const binaries = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

function findBinary(): string {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const name of binaries) {
      const path = join(folder, name);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch {
        // The next one.
      }
    }
  }
  throw new Error('No Chromium on the PATH: node scripts/ensure-chromium.mjs installs one or says how.');
}

type ContextOptions = NonNullable<Parameters<typeof chromium.launchPersistentContext>[1]>;

/** A real Chromium with a profile of its own, which is gone when it is closed. */
export async function openBrowser(
  options: ContextOptions = {},
): Promise<{ context: BrowserContext; close(): Promise<void> }> {
  const profile = mkdtempSync(join(tmpdir(), 'trawl-chromium-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: findBinary(),
    headless: true,
    args: [...flags, ...(options.args ?? [])],
    ...options,
  });
  return {
    context,
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
