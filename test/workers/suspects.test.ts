/** Turns of suspects: one at a time for as long as its work lasts, and soon the next one's after a crash. */
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Keys } from '../../src/queue/names.js';
import { withScripts } from '../../src/queue/scripts.js';
import { takeTurn } from '../../workers/suspects.js';
import { defaultTiming } from '../../workers/timing.js';
import { RedisProcess } from '../redis/redis-process.js';

const lockMs = 400;

describe('the turn of a suspect', () => {
  let server: RedisProcess;
  let next = 0;
  beforeAll(async () => {
    server = await RedisProcess.start();
  });
  afterAll(() => server.stop());

  /** A process, with a prefix of its test's own. */
  function process(prefix: string) {
    const redis = withScripts(new Redis(server.url));
    const ctx = { redis, keys: new Keys(prefix), timing: { ...defaultTiming, lockMs }, now: Date.now };
    return {
      take: (id: string, longestMs: number) => {
        next += 1;
        return takeTurn(ctx, 'pages-apify', { id, token: `t${next}` }, 2, longestMs);
      },
      /** As a crash leaves it: nothing is renewed any more. */
      crash: () => redis.disconnect(),
    };
  }

  async function until(wanted: () => Promise<boolean>, ms: number): Promise<number> {
    const began = Date.now();
    while (!(await wanted())) {
      if (Date.now() - began > ms) throw new Error(`not within ${ms} ms`);
      await delay(20);
    }
    return Date.now() - began;
  }

  it('lasts as long as its work, and ends with it', async () => {
    const [one, other] = [process('{long}'), process('{long}')];
    const turn = await one.take('a', 60_000);
    if (turn.do !== 'go') throw new Error(turn.do);
    for (let time = 0; time < 7; time += 1) {
      expect((await other.take('b', 60_000)).do).toBe('wait');
      await delay(lockMs);
    }
    await turn.done();
    const second = await other.take('b', 60_000);
    expect(second.do).toBe('go');
    if (second.do === 'go') await second.done();
    one.crash();
    other.crash();
  });

  it('is over within four lock times of a crash', async () => {
    const [one, other] = [process('{crash}'), process('{crash}')];
    expect((await one.take('a', 60_000)).do).toBe('go');
    await delay(5 * lockMs);
    one.crash();
    const took = await until(async () => (await other.take('b', 60_000)).do === 'go', 10 * lockMs);
    expect(took).toBeLessThan(4 * lockMs);
    other.crash();
  });

  it('is not that of work that hangs for longer than it may last', async () => {
    const [one, other] = [process('{hang}'), process('{hang}')];
    const turn = await one.take('a', 6 * lockMs);
    const took = await until(async () => (await other.take('b', 60_000)).do === 'go', 20 * lockMs);
    expect(took).toBeGreaterThan(5 * lockMs);
    if (turn.do === 'go') await turn.done();
    one.crash();
    other.crash();
  });
});
