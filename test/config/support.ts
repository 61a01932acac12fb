import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type ConfigOptions, loadConfig } from '../../src/config.js';
import { TrawlError } from '../../src/errors.js';

/** A folder of its own for the test, removed after it. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder with a `trawl.yaml` in it. */
export function configFolder(yaml: string | Buffer): string {
  const folder = tempFolder();
  writeFileSync(join(folder, 'trawl.yaml'), yaml);
  return folder;
}

export function load(yaml: string | Buffer, options: Partial<ConfigOptions> = {}) {
  return loadConfig({ cwd: configFolder(yaml), env: {}, ...options });
}

/** The error that loading ends with. */
export function loadError(yaml: string | Buffer, options: Partial<ConfigOptions> = {}): TrawlError {
  return raised(() => load(yaml, options));
}

export function raised(call: () => unknown): TrawlError {
  try {
    call();
  } catch (error) {
    if (error instanceof TrawlError) return error;
    throw error;
  }
  throw new Error('expected a TrawlError, and nothing was thrown');
}
