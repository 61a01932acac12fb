import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createConnection } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.js';
import { createHttpServer } from '../../src/http/server.js';
import { createLogger } from '../../src/logger.js';
import { acquirePrivateRedis } from '../../src/redis/private-server.js';
import { createFileSink } from '../../src/sinks/file.js';
import { walk } from './traces.js';

let dir: string;
let umask: number;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'trawl-security-'));
  // The most careless one: what is not asked for explicitly would be open to all.
  umask = process.umask(0);
});
afterEach(() => {
  process.umask(umask);
  rmSync(dir, { recursive: true, force: true });
});

const config = () =>
  loadConfig({ text: 'servers: { apify: { token: abcdef, tools: [acme/pages] } }', env: {}, cwd: dir });
const log = createLogger({ level: 'silent', destination: { write: () => undefined } });

describe('HTTP', () => {
  it('listens on the loopback address alone', async () => {
    const { host } = config().http;
    expect(host).toBe('127.0.0.1');
    const fine = { check: async () => ({ ok: true, checks: {} }) };
    const http = await createHttpServer({
      host,
      port: 0,
      metrics: { contentType: 'text/plain', text: async () => '' },
      health: { live: fine, ready: fine } as never,
      log,
    });
    try {
      const port = Number(new URL(http.url).port);
      expect(await connects('127.0.0.1', port)).toBe(true);
      const others = Object.values(networkInterfaces()).flatMap((all) =>
        (all ?? [])
          .filter(({ internal, family }) => !internal && family === 'IPv4')
          .map(({ address }) => address),
      );
      for (const address of ['127.0.0.2', ...others])
        expect(await connects(address, port), address).toBe(false);
    } finally {
      await http.close();
    }
  });
});

function connects(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout: 2_000 });
    const end = (open: boolean) => {
      socket.destroy();
      resolve(open);
    };
    socket.on('connect', () => end(true));
    socket.on('error', () => end(false));
    socket.on('timeout', () => end(false));
  });
}

describe('results', () => {
  it.each([false, true])('files are 0640 and folders 0750 whatever the umask (gzip %s)', async (gzip) => {
    const results = join(dir, 'results');
    const sink = createFileSink({ dir: results, gzip });
    const target = { batch: 'b', id: 'a', attempt: 1, digest: 'd' };
    await sink.check();
    await sink.begin(target);
    await sink.writePage(target, { index: 0, offset: 0, lines: ['1'] });
    await sink.writeRecord(target, { key: '../x', contentType: 'text/plain', body: Buffer.from('x') });
    await sink.settle(target, { id: 'a', attempt: 1, outcome: 'succeeded' } as never);
    await sink.begin({ ...target, attempt: 2 });
    await sink.writePage({ ...target, attempt: 2 }, { index: 0, offset: 0, lines: ['2'] });
    await sink.close();
    const entries = walk(results);
    expect(entries.filter(({ kind }) => kind === 'file').length).toBeGreaterThan(4);
    for (const { path, kind, mode } of entries) {
      // Others may do nothing, the group may not write.
      const allowed = kind === 'file' ? 0o640 : 0o750;
      expect((mode & ~allowed).toString(8), path).toBe('0');
    }
    expect(statSync(results).mode & 0o777).toBe(0o750);
  });
});

describe('the private Redis', () => {
  it('has a socket of 0700 in a folder of 0700, and no port', async () => {
    const redis = await acquirePrivateRedis({ dir: join(dir, 'redis'), path: process.env.PATH, log });
    try {
      const socket = statSync(redis.url);
      expect(socket.isSocket()).toBe(true);
      expect(socket.mode & 0o777).toBe(0o700);
      expect(statSync(dirname(redis.url)).mode & 0o777).toBe(0o700);
      // Whatever Redis makes in it, nobody else gets there.
      expect(statSync(join(dir, 'redis')).mode & 0o777).toBe(0o700);
    } finally {
      await redis.release();
    }
  });
});
