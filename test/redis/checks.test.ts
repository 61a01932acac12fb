import type { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { assertFit, checkRedis, judge, parseInfo, type RedisFacts } from '../../src/redis/checks.js';
import { createRedis } from '../../src/redis/connection.js';
import { RedisProcess } from './redis-process.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function clientOf(
  args: string[],
  login: { username?: string; password?: string } = {},
): Promise<Redis> {
  const redis = await RedisProcess.start(...args);
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const client = createRedis({ url: redis.url, tls: false, ...login }, { role: 'producer', log });
  cleanups.push(
    () => redis.stop(),
    () => client.disconnect(),
  );
  return client;
}

const healthy: Record<string, string> = {
  redis_version: '7.0.15',
  aof_enabled: '1',
  aof_last_write_status: 'ok',
  rdb_last_bgsave_status: 'ok',
  used_memory: '1048576',
  maxmemory: '0',
  maxmemory_policy: 'noeviction',
  total_system_memory: '8589934592',
  cluster_enabled: '0',
  role: 'master',
};

function facts(changes: Record<string, string | null> = {}, own: Partial<RedisFacts> = {}): RedisFacts {
  const info = new Map(
    Object.entries({ ...healthy, ...changes }).filter(
      (entry): entry is [string, string] => entry[1] !== null,
    ),
  );
  return { info, policy: 'noeviction', save: '', pingMs: 1, ...own };
}

describe('judging a Redis', () => {
  it('finds nothing to say about a healthy one', () => {
    expect(judge(facts()).map((check) => check.ok)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok']);
    expect(judge(facts()).every((check) => check.hint === null)).toBe(true);
  });

  it.each<[string, 'ok' | 'warn' | 'fail', RegExp, RedisFacts]>([
    ['version', 'ok', /Redis 6\.2\.0/, facts({ redis_version: '6.2.0' })],
    ['version', 'ok', /Redis 10\.1/, facts({ redis_version: '10.1' })],
    ['version', 'ok', /Valkey 8\.1\.0/, facts({ redis_version: '7.2.4', valkey_version: '8.1.0' })],
    ['version', 'fail', /too old/, facts({ redis_version: '6.0.16' })],
    ['version', 'fail', /too old/, facts({ redis_version: '5.9' })],
    ['version', 'warn', /unknown/, facts({ redis_version: null })],
    ['version', 'warn', /Redis x\.y/, facts({ redis_version: 'x.y' })],
    [
      'eviction policy',
      'fail',
      /allkeys-lru deletes jobs and locks/,
      facts({ maxmemory: '1' }, { policy: 'allkeys-lru' }),
    ],
    ['eviction policy', 'warn', /once a memory limit is set/, facts({}, { policy: 'volatile-lru' })],
    [
      'eviction policy',
      'fail',
      /volatile-ttl/,
      facts({ maxmemory_policy: 'volatile-ttl', maxmemory: '1' }, { policy: null }),
    ],
    ['eviction policy', 'ok', /noeviction/, facts({}, { policy: null })],
    ['eviction policy', 'warn', /cannot be read/, facts({ maxmemory_policy: null }, { policy: null })],
    ['persistence', 'fail', /cannot be written \(err\)/, facts({ aof_last_write_status: 'err' })],
    ['persistence', 'warn', /^Off/, facts({ aof_enabled: '0' })],
    ['persistence', 'warn', /^Snapshots only/, facts({ aof_enabled: '0' }, { save: '3600 1' })],
    ['persistence', 'warn', /^Snapshots only/, facts({ aof_enabled: '0' }, { save: null })],
    ['persistence', 'fail', /snapshot failed/, facts({ aof_enabled: '0', rdb_last_bgsave_status: 'err' })],
    ['persistence', 'warn', /cannot be read/, facts({ aof_enabled: null })],
    ['memory', 'ok', /1\.0 MB used of 10\.0 MB$/, facts({ maxmemory: '10485760' })],
    ['memory', 'warn', /little is left/, facts({ maxmemory: '1300000' })],
    ['memory', 'fail', /nearly full/, facts({ maxmemory: '1048577' })],
    ['memory', 'warn', /no maxmemory is set/, facts({ used_memory: '8589934592' })],
    ['memory', 'warn', /cannot be read/, facts({ used_memory: 'lots' })],
    ['topology', 'fail', /Cluster/, facts({ cluster_enabled: '1' })],
    ['topology', 'fail', /replica/, facts({ role: 'slave' })],
  ])('%s: %s, %s', (name, state, message, given) => {
    const check = judge(given).find((one) => one.name === name);
    expect(check).toMatchObject({ ok: state, message: expect.stringMatching(message) });
    expect(check?.hint === null).toBe(state === 'ok');
  });

  it('takes nothing that could move a cursor from a server', () => {
    const info = parseInfo('# Server\r\nredis_version:7\u001b[2J.0\r\nodd\r\n:x\r\n');
    expect([...info]).toEqual([['redis_version', '7.0']]);
  });
});

describe('asking a real Redis', () => {
  it('with everything as it should be', async () => {
    const client = await clientOf(['--appendonly', 'yes', '--maxmemory-policy', 'noeviction']);
    const checks = await checkRedis(client, 'here');
    expect(checks.map((check) => [check.name, check.ok])).toEqual([
      ['reachable', 'ok'],
      ['version', 'ok'],
      ['eviction policy', 'ok'],
      ['persistence', 'ok'],
      ['memory', 'ok'],
      ['topology', 'ok'],
    ]);
    expect(assertFit(checks)).toEqual([]);
  });

  it('that refuses CONFIG, evicts, and keeps nothing', async () => {
    const client = await clientOf(
      [
        '--maxmemory',
        '64mb',
        '--maxmemory-policy',
        'volatile-lru',
        '--user',
        'few',
        'on',
        '>p',
        '~*',
        '+@all',
        '-config',
      ],
      { username: 'few', password: 'p' },
    );
    const checks = await checkRedis(client, 'here');
    expect(checks.filter((check) => check.ok !== 'ok').map((check) => [check.name, check.ok])).toEqual([
      ['eviction policy', 'fail'],
      ['persistence', 'warn'],
    ]);
    expect(() => assertFit(checks)).toThrowError(
      expect.objectContaining({ code: 'redis_unfit', message: expect.stringContaining('volatile-lru') }),
    );
    expect(assertFit(checks.filter((check) => check.ok !== 'fail'))).toHaveLength(1);
  });

  it('in cluster mode', async () => {
    const checks = await checkRedis(await clientOf(['--cluster-enabled', 'yes']), 'here');
    expect(checks.find((check) => check.name === 'topology')?.ok).toBe('fail');
  });
});
