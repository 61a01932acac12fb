import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Config, loadConfig } from '../../src/config.js';

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/**
 * A configuration below deploy/ as a worker would read it: the secrets it names (`…File`) are put where the test may
 * write, and hold `content` (`redis-url`: an address).
 */
export function loadDeployed(path: string, env: Readonly<Record<string, string>> = {}): Config {
  const dir = mkdtempSync(join(tmpdir(), 'trawl-deployed-'));
  try {
    const text = read(`deploy/${path}`).replaceAll(
      /(\w+File: *)"?([^\s"}]+)"?/g,
      (_all, key: string, file: string) => {
        const name = file.slice(file.lastIndexOf('/') + 1);
        writeFileSync(
          join(dir, name),
          name === 'redis-url' ? 'redis://:secret@redis:6379' : 'secret-of-some-length',
        );
        return `${key}${join(dir, name)}`;
      },
    );
    return loadConfig({ text, env: { ...env }, cwd: root });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The longest a worker may take to end after SIGTERM, with a second for each thing it closes (`Daemon.stop`). */
export function longestStopMs(config: Config): number {
  return config.shutdown.graceMs + config.start.timeoutMs;
}
