import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  burstOf,
  createLimiter,
  LimiterFull,
  memoryTokens,
  type TokenSource,
} from '../../src/mcp/limiter.js';
import type { Operation } from '../../src/mcp/port.js';
import { redisTokens } from '../../src/mcp/redis-tokens.js';
import { RedisProcess } from '../redis/redis-process.js';

/** The largest number of calls in any window, over what the rate allows in it. */
function worstExcess(times: readonly number[], perSecond: number): number {
  let worst = Number.NEGATIVE_INFINITY;
  for (let from = 0; from < times.length; from += 1) {
    for (let to = from; to < times.length; to += 1) {
      const seconds = ((times[to] as number) - (times[from] as number)) / 1000;
      worst = Math.max(worst, to - from + 1 - seconds * perSecond);
    }
  }
  return worst;
}

/** Hands out tokens when the test says so. */
class ManualTokens implements TokenSource {
  #grant: ((granted: number) => void) | null = null;
  async take(): Promise<{ granted: number; waitMs: number }> {
    const granted = await new Promise<number>((resolve) => {
      this.#grant = resolve;
    });
    return { granted, waitMs: 1 };
  }
  async coolDown(): Promise<void> {}
  async grant(count: number): Promise<void> {
    await vi.waitUntil(() => this.#grant !== null, { interval: 1 });
    const grant = this.#grant;
    this.#grant = null;
    grant?.(count);
  }
}

describe('the queue of a process', () => {
  it('serves abort, poll, read, start in this order, and each in the order of arrival', async () => {
    const tokens = new ManualTokens();
    const limiter = createLimiter(tokens);
    const served: string[] = [];
    const asked: Operation[] = [
      'start',
      'read',
      'poll',
      'reconcile',
      'record',
      'abort',
      'start',
      'poll',
      'connect',
      'list_tools',
    ];
    const waits = asked.map((operation, n) =>
      limiter.acquire(operation).then(() => served.push(`${operation}${n}`)),
    );
    for (let n = 0; n < asked.length; n += 1) await tokens.grant(1);
    await Promise.all(waits);
    expect(served.join(' ')).toBe(
      'abort5 connect8 list_tools9 poll2 poll7 read1 reconcile3 record4 start0 start6',
    );
    limiter.close();
  });

  it('is bounded', async () => {
    const limiter = createLimiter(new ManualTokens(), { maxWaiting: 2 });
    const waits = [limiter.acquire('poll'), limiter.acquire('poll')].map((wait) =>
      wait.catch((error) => error),
    );
    await expect(limiter.acquire('abort')).rejects.toBeInstanceOf(LimiterFull);
    limiter.close();
    for (const wait of waits) expect(await wait).toBeInstanceOf(LimiterFull);
    await expect(limiter.acquire('abort')).rejects.toBeInstanceOf(LimiterFull);
  });

  it('lets a waiter go when its signal aborts, and gives the token to the next', async () => {
    const tokens = new ManualTokens();
    const limiter = createLimiter(tokens);
    const controller = new AbortController();
    const first = limiter.acquire('poll', controller.signal);
    const second = limiter.acquire('poll');
    controller.abort(new Error('enough'));
    await expect(first).rejects.toThrow('enough');
    await expect(limiter.acquire('poll', controller.signal)).rejects.toThrow('enough');
    await tokens.grant(1);
    await second;
    limiter.close();
  });

  it('outlives a source that fails', async () => {
    let fails = 1;
    const errors: unknown[] = [];
    const source = memoryTokens(1_000);
    const limiter = createLimiter(
      {
        take: async (wanted) => {
          if (fails-- > 0) throw new Error('gone');
          return source.take(wanted);
        },
        coolDown: () => Promise.reject(new Error('gone')),
      },
      { onSourceError: (error) => errors.push(error) },
    );
    await limiter.acquire('poll');
    limiter.penalise(5);
    await vi.waitUntil(() => errors.length === 2);
    limiter.close();
  });
});

describe('tokens in memory', () => {
  it.each([1, 7, 20, 333, 10_000])(
    '%i a second: no window holds more than the rate and the burst',
    async (rate) => {
      let now = 0;
      const tokens = memoryTokens(rate, () => now);
      const times: number[] = [];
      let seed = rate;
      for (let n = 0; n < 600; n += 1) {
        seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
        const { granted, waitMs } = await tokens.take(1 + (seed % 5));
        for (let k = 0; k < granted; k += 1) times.push(now);
        now += seed % 3 === 0 ? waitMs : (seed % 100) / rate;
      }
      expect(times.length).toBeGreaterThan(50);
      expect(worstExcess(times, rate)).toBeLessThanOrEqual(burstOf(rate) + 0.01);
    },
  );

  it('keep quiet during a cool-down; a shorter one does not cut a longer one', async () => {
    let now = 0;
    const tokens = memoryTokens(100, () => now);
    await tokens.coolDown(500);
    await tokens.coolDown(100);
    expect(await tokens.take(1)).toEqual({ granted: 0, waitMs: 500 });
    now = 500;
    expect((await tokens.take(1)).granted).toBe(1);
  });
});

describe('tokens in Redis', () => {
  let process: RedisProcess;
  let redis: Redis;
  const prefix = '{trawl}';

  beforeAll(async () => {
    process = await RedisProcess.start();
    redis = new Redis(process.url);
  });
  afterAll(async () => {
    redis.disconnect();
    await process.stop();
  });
  beforeEach(() => redis.flushall());
  afterEach(() => redis.call('SCRIPT', 'FLUSH'));

  it('hold the rate over three processes, in any window of the clock of Redis', async () => {
    const perSecond = 200;
    const connections = [1, 2, 3].map(() => new Redis(process.url));
    const grants: { from: number; to: number; count: number }[] = [];
    const clock = async (connection: Redis) => {
      const [seconds, micros] = await connection.time();
      return Number(seconds) + Number(micros) / 1e6;
    };
    await Promise.all(
      connections.map(async (connection, n) => {
        const tokens = redisTokens({
          redis: connection,
          prefix,
          server: 'apify',
          requestsPerSecond: perSecond,
        });
        for (let taken = 0; taken < 50; ) {
          const from = await clock(connection);
          const { granted } = await tokens.take(n + 3);
          const to = await clock(connection);
          if (granted > 0) grants.push({ from, to, count: granted });
          taken += granted;
        }
      }),
    );
    for (const { from } of grants) {
      for (const { to } of grants) {
        const inside = grants.filter((grant) => grant.from >= from && grant.to <= to);
        const count = inside.reduce((sum, grant) => sum + grant.count, 0);
        if (count > 0) expect(count - (to - from) * perSecond).toBeLessThanOrEqual(burstOf(perSecond) + 0.01);
      }
    }
    for (const connection of connections) connection.disconnect();
  });

  it('let no more through in all than the rate and one burst', async () => {
    const perSecond = 200;
    const limiters = [1, 2, 3].map(() =>
      createLimiter(redisTokens({ redis, prefix, server: 'apify', requestsPerSecond: perSecond })),
    );
    const began = performance.now();
    await Promise.all(
      limiters.flatMap((limiter) => Array.from({ length: 50 }, () => limiter.acquire('poll'))),
    );
    expect(performance.now() - began).toBeGreaterThan(((150 - burstOf(perSecond)) / perSecond) * 1000 - 5);
    for (const limiter of limiters) limiter.close();
  });

  it('are granted a crowd at a time', async () => {
    const take = vi.spyOn(redis, 'evalsha');
    const limiter = createLimiter(
      redisTokens({ redis, prefix, server: 'apify', requestsPerSecond: 100_000 }),
    );
    await limiter.acquire('poll');
    take.mockClear();
    await Promise.all(Array.from({ length: 500 }, () => limiter.acquire('poll')));
    expect(take.mock.calls.length).toBeLessThanOrEqual(7);
    limiter.close();
    take.mockRestore();
  });

  it('make all processes wait after a penalty, under keys that expire', async () => {
    const one = createLimiter(redisTokens({ redis, prefix, server: 'apify', requestsPerSecond: 100 }));
    const other = createLimiter(redisTokens({ redis, prefix, server: 'apify', requestsPerSecond: 100 }));
    const now = async () => {
      const [seconds, micros] = await redis.time();
      return Number(seconds) * 1000 + Number(micros) / 1000;
    };
    await other.acquire('poll');
    const began = await now();
    one.penalise(200);
    one.penalise(20);
    // Behind the penalties on the same connection.
    await redis.ping();
    await other.acquire('abort');
    expect(await now()).toBeGreaterThan(began + 195);
    one.penalise(5_000);
    await redis.ping();
    const keys = await redis.keys('*');
    expect(keys.every((key) => key.startsWith(`${prefix}:rate:apify`))).toBe(true);
    for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(0);
    one.close();
    other.close();
  });

  it('are kept apart by server, and survive a Redis that has lost its scripts', async () => {
    const a = redisTokens({ redis, prefix, server: 'a', requestsPerSecond: 1 });
    const b = redisTokens({ redis, prefix, server: 'b', requestsPerSecond: 1 });
    expect((await a.take(1)).granted).toBe(1);
    await redis.call('SCRIPT', 'FLUSH');
    expect((await b.take(1)).granted).toBe(1);
    const { granted, waitMs } = await a.take(1);
    expect(granted).toBe(0);
    expect(waitMs).toBeGreaterThan(900);
    expect(waitMs).toBeLessThanOrEqual(1_000);
  });

  it('are not blocked by a clock that was set back', async () => {
    await redis.set(`${prefix}:rate:apify`, String(Date.now() + 3_600_000));
    const { granted, waitMs } = await redisTokens({
      redis,
      prefix,
      server: 'apify',
      requestsPerSecond: 10,
    }).take(1);
    expect(granted).toBe(0);
    expect(waitMs).toBeLessThanOrEqual(101);
  });
});
