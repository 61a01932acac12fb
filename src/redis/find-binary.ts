import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { TrawlError } from '../errors.js';

/** The servers Trawl can run by itself, the preferred one first. */
const redisBinaries = ['redis-server', 'valkey-server'] as const;

/** The one line to type per platform; `scripts/ensure-redis.mjs` prints the same (a test compares them). */
const installLines = [
  ['Debian, Ubuntu', 'sudo apt-get install -y --no-install-recommends redis-server'],
  ['macOS', 'brew install redis'],
  ['Fedora, RHEL', 'sudo dnf install -y redis || sudo dnf install -y valkey'],
  ['Alpine', 'apk add redis'],
  ['Docker', 'docker run -d -p 127.0.0.1:6379:6379 redis:7 --appendonly yes --maxmemory-policy noeviction'],
] as const;

/** How to get a Redis, for people: one line a platform. */
export function installHint(): string {
  const lines = installLines.map(([where, line]) => `  ${`${where}:`.padEnd(16)} ${line}`);
  return ['Install one, or set redis.url (REDIS_URL) to a server you have:', ...lines].join('\n');
}

/**
 * The absolute path of the first redis-server, else valkey-server, on `path` (the PATH variable). Looks at nothing
 * but the file system, so that a missing server is said before anything else takes time.
 * @throws TrawlError `redis_binary_missing`
 */
export function findRedisBinary(path: string | undefined): string {
  const folders = (path ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
  for (const name of redisBinaries) {
    for (const folder of folders) {
      const file = join(folder, name);
      if (isExecutable(file)) return file;
    }
  }
  throw new TrawlError('redis_binary_missing', 'No redis-server or valkey-server on the PATH.', {
    hint: installHint(),
  });
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
