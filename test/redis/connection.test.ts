import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import type { Config } from '../../src/config.js';
import {
  type ConnectionOptions,
  connectRedis,
  createRedis,
  describeRedis,
  resolveRedis,
  toRedisError,
} from '../../src/redis/connection.js';
import { parseTarget } from '../../src/redis/target.js';
import { RedisProcess, startSentinel } from './redis-process.js';

type Target = Config['redis'];

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function redisWith(...args: string[]): Promise<RedisProcess> {
  const redis = await RedisProcess.start(...args);
  cleanups.push(() => redis.stop());
  return redis;
}

const target = (url: string, rest: Partial<Target> = {}): Target => ({ url, tls: false, ...rest });

function logLines() {
  const lines: string[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  return {
    lines,
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
  };
}

function open(where: Target, options: Partial<ConnectionOptions> = {}): Redis & { lines: string[] } {
  const { lines, log } = logLines();
  const client = createRedis(where, { role: 'worker', log, ...options });
  cleanups.push(() => client.disconnect());
  return Object.assign(client, { lines });
}

const caught = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: Error) => error,
  );

describe('a Redis target', () => {
  it.each<[Target, object, string]>([
    [target('redis://h:7000/2'), { host: 'h', port: 7000, db: 2, tls: false }, 'redis://h:7000 db 2'],
    [target('redis://h'), { host: 'h', port: 6379, db: 0 }, 'redis://h:6379'],
    [target('rediss://u:p%40ss@h'), { tls: true, username: 'u', password: 'p@ss' }, 'rediss://h:6379'],
    [
      target('redis://u:p@h/1', { username: 'own', password: 'secret', db: 3 }),
      { username: 'own', password: 'secret', db: 3 },
      'redis://h:6379 db 3',
    ],
    [target('redis://[::1]:7000'), { host: '::1', port: 7000 }, 'redis://[::1]:7000'],
    [target('/run/redis.sock', { db: 1 }), { path: '/run/redis.sock', db: 1 }, '/run/redis.sock db 1'],
    [
      target('', { sentinel: { name: 'main', hosts: [{ host: 'a', port: 26379 }], password: 'x' } }),
      { sentinel: { name: 'main' }, secrets: ['x'] },
      'main (Sentinel a:26379)',
    ],
  ])('%j', (where, address, label) => {
    expect(parseTarget(where)).toMatchObject(address);
    expect(describeRedis(where)).toBe(label);
  });

  it.each(['http://canary@h', 'not a url: canary', '', 'redis://h/canary', 'redis://:canary%zz@h'])(
    'that is none, %j, is refused without being shown',
    (url) => {
      const refused = expect.objectContaining({
        code: 'config_invalid',
        message: expect.not.stringContaining('canary'),
      });
      expect(() => parseTarget(target(url))).toThrowError(refused);
    },
  );
});

describe('a worker connection', () => {
  it('waits for Redis, comes back after a restart, and says each once', async () => {
    const redis = await RedisProcess.reserve();
    cleanups.push(() => redis.stop());
    const client = open(target(redis.url));
    const early = client.set('a', '1');
    await event(client, 'reconnecting');
    await event(client, 'reconnecting');
    await redis.up();
    expect(await early).toBe('OK');
    await redis.down();
    const late = client.get('a');
    await redis.up();
    expect(await late).toBeNull();
    const said = client.lines.map((line) => line.replace(/:.*/, '').replace(/ \{.*/, ''));
    expect(said.slice(0, 2)).toEqual(['warn Redis is not reachable', 'info Redis is reachable again']);
    expect(said.length).toBeLessThanOrEqual(5);
    expect(client.options.maxRetriesPerRequest).toBeNull();
  });
});

describe('a producer connection', () => {
  it('fails fast while Redis is away, with advice, and recovers', async () => {
    const redis = await redisWith();
    const where = target(redis.url);
    const client = open(where, { role: 'producer' });
    expect(await client.ping()).toBe('PONG');
    await redis.down();
    const error = toRedisError(await caught(client.ping()), where);
    expect(error).toMatchObject({
      code: 'redis_unreachable',
      exitCode: 4,
      hint: expect.stringMatching(/try again/),
    });
    await redis.up();
    await event(client, 'ready');
    expect(await client.ping()).toBe('PONG');
  });

  it('gives up on a Redis that hangs', async () => {
    const redis = await redisWith();
    const where = target(redis.url);
    const client = open(where, { role: 'producer', timeoutMs: 150 });
    await client.ping();
    redis.signal('SIGSTOP');
    expect(toRedisError(await caught(client.ping()), where)).toMatchObject({ code: 'redis_unreachable' });
    redis.signal('SIGCONT');
  });

  it('that never gets there is closed', async () => {
    const redis = await RedisProcess.reserve();
    const { log } = logLines();
    const failed = connectRedis(target(redis.url), { role: 'producer', log, timeoutMs: 200 });
    await expect(failed).rejects.toMatchObject({
      code: 'redis_unreachable',
      message: expect.stringMatching(/^Redis at redis:\/\/127\.0\.0\.1:\d+: connect ECONNREFUSED/),
    });
  });

  it('leaves errors that are not about reaching Redis alone', async () => {
    const redis = await redisWith();
    const client = open(target(redis.url), { role: 'producer' });
    await client.set('text', 'x');
    const error = await caught(client.lpush('text', 'y'));
    expect(toRedisError(error, target(redis.url))).toBe(error);
  });
});

describe('logging in', () => {
  it('works with user, password and database, in keys or in the URL', async () => {
    const redis = await redisWith(
      '--user',
      'trawl',
      'on',
      '>s3cret word',
      '~*',
      '+@all',
      '--user',
      'default',
      'off',
    );
    const inKeys = target(`redis://127.0.0.1:${redis.port}`, {
      username: 'trawl',
      password: 's3cret word',
      db: 3,
    });
    const inUrl = target(`redis://trawl:s3cret%20word@127.0.0.1:${redis.port}/3`);
    const bySocket = target(redis.socket, { username: 'trawl', password: 's3cret word', db: 3 });
    await open(inKeys).set('here', '1');
    expect(await open(inUrl).get('here')).toBe('1');
    expect(await open(bySocket).get('here')).toBe('1');
  });

  it('that is refused names the keys to check and never the password', async () => {
    const redis = await redisWith('--requirepass', 'right');
    const where = target(redis.url, { password: 'canary-password' });
    const { lines, log } = logLines();
    const error = await caught(connectRedis(where, { role: 'producer', log, timeoutMs: 1_000 }));
    expect(error).toMatchObject({
      code: 'redis_unreachable',
      hint: expect.stringContaining('redis.password'),
    });
    expect(lines).toHaveLength(1);
    expect(JSON.stringify([error, error.message, error.cause ?? '', lines])).not.toContain('canary-password');
  });

  it('that is refused leaves no password in the error events, of copies either', async () => {
    const redis = await redisWith('--requirepass', 'right');
    const client = open(target(redis.url, { password: 'canary-password' }));
    const copy = client.duplicate();
    cleanups.push(() => copy.disconnect());
    const errors = await Promise.all(
      [client, copy].map((one) => new Promise<Error>((resolve) => one.once('error', resolve))),
    );
    expect(errors.map((error) => error.message)).toEqual([
      expect.stringMatching(/^WRONGPASS/),
      expect.stringMatching(/^WRONGPASS/),
    ]);
    expect(inspect(errors, { depth: 10, showHidden: true })).not.toContain('canary-password');
  });
});

describe('TLS', () => {
  const cert = join(import.meta.dirname, 'tls', 'cert.pem');
  const tlsRedis = async () => {
    const redis = await RedisProcess.reserve();
    const port = String(redis.port);
    await redis.stop();
    const key = join(import.meta.dirname, 'tls', 'key.pem');
    const tls = ['--port', '0', '--tls-port', port, '--tls-cert-file', cert, '--tls-key-file', key];
    await redisWith(...tls, '--tls-ca-cert-file', cert, '--tls-auth-clients', 'no');
    return `rediss://localhost:${port}`;
  };

  it('with a certificate that nobody vouches for is refused', async () => {
    const { log } = logLines();
    const failed = connectRedis(target(await tlsRedis()), { role: 'producer', log, timeoutMs: 1_000 });
    await expect(failed).rejects.toMatchObject({
      code: 'redis_unreachable',
      message: expect.stringMatching(/self-signed/),
    });
  });

  it('works with one that is trusted', async () => {
    const url = await tlsRedis();
    const folder = mkdtempSync(join(tmpdir(), 'trawl-tls-'));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const script = join(folder, 'ping.mts');
    const connection = JSON.stringify(join(import.meta.dirname, '../../src/redis/connection.ts'));
    const code = `import { connectRedis } from ${connection};
      const log = { debug() {}, info() {}, warn() {}, error() {} };
      const client = await connectRedis({ url: ${JSON.stringify(url)}, tls: true }, { role: 'producer', log });
      process.stdout.write(await client.ping());
      client.disconnect();`;
    writeFileSync(script, code);
    const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), script], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: cert },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output] = (await once(child.stdout, 'data')) as [Buffer];
    expect(output.toString()).toBe('PONG');
    await once(child, 'exit');
  });
});

describe('Sentinel', () => {
  it('leads to the master, and to the new one after a failover', async () => {
    const master = await redisWith('--repl-diskless-sync-delay', '0');
    const replica = await redisWith('--replicaof', '127.0.0.1', String(master.port));
    const copy = open(target(replica.url));
    // Before the sentinel starts: it asks the master for its replicas at once, and then only every ten seconds.
    await until(async () => (await copy.info('replication')).includes('master_link_status:up'));
    const sentinel = await startSentinel(master.port);
    cleanups.push(() => sentinel.stop());
    const where = target('', {
      sentinel: { name: 'main', hosts: [{ host: '127.0.0.1', port: sentinel.port }] },
    });
    const watch = open(target(`redis://127.0.0.1:${sentinel.port}`));
    const client = open(where);
    expect(await client.set('a', '1')).toBe('OK');
    // A failover that comes before the copy would lose the write: replication does not wait.
    expect(await client.wait(1, 5_000)).toBe(1);
    await until(async () => (await watch.call('SENTINEL', 'FAILOVER', 'main').catch(() => null)) === 'OK');
    await until(async () => {
      await client.set('b', '2');
      return client.stream.remotePort === replica.port;
    });
    expect((await client.role())[0]).toBe('master');
    expect(await open(target(replica.url)).get('a')).toBe('1');
  });
});

describe('the Redis of a configuration', () => {
  const { log } = logLines();

  it('is the one it names', async () => {
    const redis = { url: 'redis://h', tls: false };
    const resolved = await resolveRedis({ redis, file: null }, { cwd: '/nonexistent', env: {}, log });
    expect(resolved).toMatchObject({ target: redis, private: false });
    await resolved.release();
  });

  it('is a private one in the folder of the file when it names none', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trawl-own-'));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const config = { redis: { url: '', tls: false }, file: join(folder, 'trawl.yaml') };
    const resolved = await resolveRedis(config, { cwd: '/nonexistent', env: process.env, log });
    expect(resolved.private).toBe(true);
    expect(resolved.target.url).toBe(join(folder, '.trawl/redis/redis.sock'));
    const client = await connectRedis(resolved.target, { role: 'producer', log });
    expect(await client.ping()).toBe('PONG');
    client.disconnect();
    await resolved.release();
  });
});

/** Not `once` of node:events, which fails on the error events that these tests are about. */
function event(client: Redis, name: 'ready' | 'reconnecting'): Promise<void> {
  return new Promise((resolve) => client.once(name, () => resolve()));
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50));
}
