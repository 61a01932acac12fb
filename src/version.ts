import { readFileSync } from 'node:fs';

/** Trawl's own version, from package.json: two folders up when built (`dist/src`), one when run from source. */
export const version: string = readVersion();

function readVersion(): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      const manifest = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as {
        version?: unknown;
      };
      if (typeof manifest.version === 'string') return manifest.version;
    } catch {
      // The other place has it.
    }
  }
  return 'unknown';
}
