/** Whose slot it is: a worker that lost its job must neither take a run's slot away nor keep a dead one alive. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Keys } from '../../src/queue/names.js';
import { type ScriptedRedis, withScripts } from '../../src/queue/scripts.js';
import { Slots } from '../../src/queue/slots.js';
import { RedisProcess } from '../redis/redis-process.js';

const startingMs = 300;
const key = 'default.one';

describe('slots', () => {
  let server: RedisProcess;
  let redis: ScriptedRedis;
  let count = 0;
  let keys: Keys;
  let first: Slots;
  let second: Slots;
  const held = () => redis.zrange(keys.slots('apify'), '0', '-1');

  beforeAll(async () => {
    server = await RedisProcess.start();
    redis = withScripts(new Redis(server.url));
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  beforeEach(() => {
    keys = new Keys(`{slots-${count++}}`);
    const limits = { runs: 2, memoryMb: null };
    const spans = { trialEveryMs: 1_000, startingMs };
    const fail = (error: unknown) => {
      throw error;
    };
    first = new Slots(redis, keys, 'apify', limits, 'first', fail, spans);
    second = new Slots(redis, keys, 'apify', limits, 'second', fail, spans);
    return () => {
      first.close();
      second.close();
    };
  });

  async function bind(slots: Slots): Promise<void> {
    const { members } = await slots.reserve(1);
    expect(await slots.bind(members[0] as string, key, 0)).toBe('bound');
  }

  it('given back by a worker that lost its job stay with the run another one started', async () => {
    await bind(first);
    await bind(second);
    await second.toRun(key);
    await first.giveBack(key);
    expect(await held()).toEqual([key]);
    await second.release(key);
    expect(await held()).toEqual([]);
  });

  it('are given back when no run has them', async () => {
    await bind(first);
    await first.giveBack(key);
    expect(await held()).toEqual([]);
  });

  it('that were left run out by themselves', async () => {
    await bind(first);
    first.leave(key);
    expect(await held()).toEqual([key]);
    await vi.waitFor(
      async () => {
        const { members } = await second.reserve(2);
        await second.giveBack(...members);
        expect(members).toHaveLength(2);
      },
      { timeout: 5_000, interval: 50 },
    );
    expect(await held()).toEqual([]);
  });
});
