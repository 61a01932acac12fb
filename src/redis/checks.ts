import type { Redis } from 'ioredis';
import { type Check, fail, ok, warn } from '../doctor/check.js';
import { TrawlError } from '../errors.js';
import { cleanText } from '../scrape/clean-text.js';

const leastVersion = [6, 2] as const;
const memoryWarnRatio = 0.8;
const memoryFailRatio = 0.95;

/** What the checks look at: `INFO`, and two settings, null where CONFIG is refused (most hosted servers). */
export interface RedisFacts {
  readonly info: ReadonlyMap<string, string>;
  readonly policy: string | null;
  readonly save: string | null;
  readonly pingMs: number;
}

/**
 * Whether a reachable Redis is fit to hold scrapes: version, eviction policy, persistence, memory, cluster mode, role.
 * @throws what ioredis throws when Redis cannot be asked
 */
export async function checkRedis(client: Redis, label: string): Promise<Check[]> {
  const facts = await readFacts(client);
  return [ok('reachable', `${label} answers in ${facts.pingMs.toFixed(1)} ms`), ...judge(facts)];
}

/**
 * For the start of a worker: refuses a Redis that would lose or corrupt scrapes, and returns what is only worth a warning.
 * @throws TrawlError `redis_unfit` naming everything that is wrong
 */
export function assertFit(checks: readonly Check[]): Check[] {
  const failed = checks.filter((check) => check.ok === 'fail');
  if (failed.length > 0) {
    throw new TrawlError(
      'redis_unfit',
      `This Redis is not fit: ${failed.map((check) => check.message).join('; ')}.`,
      {
        hint: failed.map((check) => check.hint).join('\n'),
      },
    );
  }
  return checks.filter((check) => check.ok === 'warn');
}

async function readFacts(client: Redis): Promise<RedisFacts> {
  const before = performance.now();
  await client.ping();
  const pingMs = performance.now() - before;
  const info = parseInfo(await client.info());
  const [policy, save] = await Promise.all([setting(client, 'maxmemory-policy'), setting(client, 'save')]);
  return { info, policy, save, pingMs };
}

async function setting(client: Redis, name: string): Promise<string | null> {
  try {
    const [, value] = (await client.config('GET', name)) as string[];
    return typeof value === 'string' ? cleanText(value) : null;
  } catch {
    return null;
  }
}

export function parseInfo(text: string): Map<string, string> {
  const pairs = text.split(/\r?\n/).flatMap((line): [string, string][] => {
    const at = line.indexOf(':');
    return at > 0 && !line.startsWith('#') ? [[line.slice(0, at), cleanText(line.slice(at + 1))]] : [];
  });
  return new Map(pairs);
}

/** Pure: the same facts give the same findings. */
export function judge(facts: RedisFacts): Check[] {
  return [version(facts), eviction(facts), persistence(facts), memory(facts), topology(facts)];
}

function version({ info }: RedisFacts): Check {
  const valkey = info.get('valkey_version');
  const text = info.get('redis_version') ?? '';
  const [major = Number.NaN, minor = Number.NaN] = text.split('.').map(Number);
  const product = valkey ? `Valkey ${valkey}` : `Redis ${text || 'of unknown version'}`;
  if (Number.isNaN(major) || Number.isNaN(minor)) {
    return warn('version', product, `Make sure that it is at least ${leastVersion.join('.')}.`);
  }
  const enough = major > leastVersion[0] || (major === leastVersion[0] && minor >= leastVersion[1]);
  return enough
    ? ok('version', product)
    : fail(
        'version',
        `${product} is too old`,
        `Upgrade to ${leastVersion.join('.')} or newer; 7 is recommended.`,
      );
}

/** Locks, slots and jobs are ordinary keys, some with a lifetime: every policy but noeviction deletes them when memory is full. */
function eviction({ info, policy }: RedisFacts): Check {
  const name = 'eviction policy';
  const found = policy ?? info.get('maxmemory_policy');
  const hint =
    'Set maxmemory-policy to noeviction (CONFIG SET, redis.conf, or the parameter group of a hosted Redis).';
  if (found === undefined || found === '') return warn(name, 'It cannot be read (CONFIG is refused)', hint);
  if (found === 'noeviction') return ok(name, found);
  if (number(info, 'maxmemory') === 0) {
    return warn(name, `${found} deletes jobs once a memory limit is set; there is none now`, hint);
  }
  return fail(name, `${found} deletes jobs and locks when memory is full`, hint);
}

function persistence({ info, save }: RedisFacts): Check {
  const name = 'persistence';
  const hint =
    'Set appendonly to yes (and appendfsync to everysec), or accept losing that with a crash of Redis.';
  const aof = info.get('aof_enabled');
  if (aof === undefined) return warn(name, 'It cannot be read', hint);
  if (aof === '1') {
    const status = info.get('aof_last_write_status') ?? 'ok';
    return status === 'ok'
      ? ok(name, 'append-only file')
      : fail(name, `The append-only file cannot be written (${status})`, "Look at Redis's log and its disk.");
  }
  if ((info.get('rdb_last_bgsave_status') ?? 'ok') !== 'ok') {
    return fail(
      name,
      'The last snapshot failed, and Redis may refuse writes',
      "Look at Redis's log and its disk.",
    );
  }
  if (save === '') return warn(name, 'Off: a restart of Redis forgets every scrape', hint);
  return warn(name, 'Snapshots only: a crash of Redis forgets what came after the last one', hint);
}

function memory({ info }: RedisFacts): Check {
  const name = 'memory';
  const used = number(info, 'used_memory');
  const limit = number(info, 'maxmemory') ?? 0;
  const system = number(info, 'total_system_memory') ?? 0;
  if (used === null)
    return warn(name, 'It cannot be read', 'Watch it yourself: a full Redis refuses new scrapes.');
  const ceiling = limit > 0 ? limit : system;
  const of =
    ceiling > 0
      ? ` of ${megabytes(ceiling)}${limit > 0 ? '' : ' that the machine has (no maxmemory is set)'}`
      : '';
  const message = `${megabytes(used)} used${of}`;
  const ratio = ceiling > 0 ? used / ceiling : 0;
  const hint = 'Raise maxmemory, or shorten keep.settled and keep.failed; a waiting scrape takes about 3 KB.';
  // Without a limit of its own Redis does not refuse writes, but the kernel may end it.
  if (ratio >= memoryFailRatio && limit > 0) return fail(name, `${message}: nearly full`, hint);
  return ratio >= memoryWarnRatio ? warn(name, `${message}: little is left`, hint) : ok(name, message);
}

function topology({ info }: RedisFacts): Check {
  const name = 'topology';
  if (info.get('cluster_enabled') === '1') {
    return fail(name, 'Redis Cluster', 'Use a single Redis, or one with Sentinel (redis.sentinel).');
  }
  if (info.get('role') === 'slave') {
    return fail(
      name,
      'A replica, which refuses writes',
      "Use the master's address, or redis.sentinel, which finds it.",
    );
  }
  return ok(name, 'a single master');
}

function number(info: ReadonlyMap<string, string>, key: string): number | null {
  const text = info.get(key) ?? '';
  return /^\d{1,18}$/.test(text) ? Number(text) : null;
}

function megabytes(bytes: number): string {
  return bytes >= 1024 ** 3 ? `${(bytes / 1024 ** 3).toFixed(1)} GB` : `${(bytes / 1024 ** 2).toFixed(1)} MB`;
}
