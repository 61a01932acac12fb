/** An outcome is counted once, also when the answer to its publishing is lost and the client sends the command again. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Config } from '../../src/config.js';
import { createLogger } from '../../src/logger.js';
import { AttemptStore } from '../../src/queue/attempt-store.js';
import type { Holds } from '../../src/queue/holds.js';
import { Keys } from '../../src/queue/names.js';
import { publishOutcome } from '../../src/queue/publish.js';
import { type ScriptedRedis, withScripts } from '../../src/queue/scripts.js';
import { createRedis } from '../../src/redis/connection.js';
import type { Attempt } from '../../src/run/attempt.js';
import { decide } from '../../src/run/outcome.js';
import { createFileSink } from '../../src/sinks/file.js';
import { Brake } from '../../workers/brake.js';
import { TcpProxy } from '../chaos/proxy.js';
import { RedisProcess } from '../redis/redis-process.js';

const keys = new Keys('{publish}');
const subject = { id: 'one', batch: 'default', server: 'apify', tool: 'a/b', meta: null, digest: 'd' };
const decision = decide('failed', 'The run ended FAILED.', 1_000);

describe('publishing an outcome', () => {
  let server: RedisProcess;
  let proxy: TcpProxy;
  let direct: Redis;
  let redis: ScriptedRedis;
  let dir: string;
  beforeAll(async () => {
    server = await RedisProcess.start();
    proxy = await TcpProxy.open(server.port);
    direct = new Redis(server.url);
    dir = await mkdtemp(join(tmpdir(), 'trawl-publish-'));
    const log = createLogger({ level: 'silent' });
    redis = withScripts(
      createRedis({ url: `redis://127.0.0.1:${proxy.port}`, tls: false }, { role: 'worker', log }),
    );
    await direct.hset(keys.attempt('default.one'), { n: 1, ph: 5, at: 1, dg: 'd' });
    await direct.hset(keys.job('scrape', 'default.one'), { timestamp: 1, data: '{}' });
    await redis.ping();
  });
  afterAll(async () => {
    redis.disconnect();
    direct.disconnect();
    await proxy.close();
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  });

  const publish = async (lose: boolean) => {
    const { attempt } = await new AttemptStore(redis, keys).load('default.one');
    const sink = createFileSink({ dir, gzip: false });
    const settle = sink.settle.bind(sink);
    sink.settle = async (...args) => {
      const document = await settle(...args);
      if (lose) proxy.loseNextReply();
      return document;
    };
    const keep = { settledMs: 60_000, failedMs: 60_000 };
    const deps = { redis, keys, sink, keep, claimMs: 1_000 };
    return publishOutcome(deps, attempt as Attempt, subject, decision, 0);
  };
  const settled = () => direct.hget(keys.batch('default'), 'settled');

  it('is the first, once, though its answer was lost', async () => {
    const { document, first } = await publish(true);
    expect(first).toBe(true);
    expect([await settled(), await direct.xlen(keys.events)]).toEqual(['1', 1]);
    const progress = await direct.hget(keys.job('scrape', 'default.one'), 'progress');
    expect(JSON.parse(progress ?? '')).toEqual(document);
  });

  it('is not the first when somebody else does it again', async () => {
    expect((await publish(false)).first).toBe(false);
    expect([await settled(), await direct.xlen(keys.events)]).toEqual(['1', 1]);
  });
});

describe('a verdict on a tool', () => {
  it('is counted once by its brake, though the answer was lost', async () => {
    const server = await RedisProcess.start();
    const proxy = await TcpProxy.open(server.port);
    const log = createLogger({ level: 'silent' });
    const redis = withScripts(
      createRedis({ url: `redis://127.0.0.1:${proxy.port}`, tls: false }, { role: 'worker', log }),
    );
    const direct = new Redis(server.url);
    try {
      const brake = new Brake(
        redis,
        keys,
        {} as Holds,
        {
          brake: { window: 20, badRatio: 0.8, action: 'hold' },
          servers: { apify: { tools: { 'a/b': {} } } },
        } as unknown as Config,
        log,
      );
      await redis.ping();
      proxy.loseNextReply();
      await brake.record('apify', 'a/b', 'failed', null, 1_000);
      expect(await direct.llen(keys.brakeWindow('apify', 'a/b'))).toBe(1);
      await brake.record('apify', 'a/b', 'failed', null, 1_000);
      expect(await direct.llen(keys.brakeWindow('apify', 'a/b'))).toBe(2);
    } finally {
      redis.disconnect();
      direct.disconnect();
      await proxy.close();
      await server.stop();
    }
  });
});
