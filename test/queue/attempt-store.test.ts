/** A command whose reply was lost is sent again by the client: it must change and tell nothing more. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AttemptStore } from '../../src/queue/attempt-store.js';
import { Keys } from '../../src/queue/names.js';
import { type ScriptedRedis, withScripts } from '../../src/queue/scripts.js';
import { RedisProcess } from '../redis/redis-process.js';

const keys = new Keys('{again}');
const scrape = 'default.one';
const lock = { key: 'the-lock', token: 'mine' };
const subject = { id: 'one', batch: 'default', server: 'apify', tool: 'a/b' };

describe('what is written with a change of state', () => {
  let server: RedisProcess;
  let redis: ScriptedRedis;
  let store: AttemptStore;
  beforeAll(async () => {
    server = await RedisProcess.start();
    redis = withScripts(new Redis(server.url));
    store = new AttemptStore(redis, keys);
    await redis.set(lock.key, lock.token);
    await redis.hset(keys.attempt(scrape), { n: 1, ph: 1, it: 5, at: 1 });
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  const events = async () =>
    (await redis.xrange(keys.events, '-', '+')).map(([, fields]) => `${fields[1]} ${fields[7]}`);

  it('a start is told of once, and claimed until its attempt ends', async () => {
    const save = () => store.saveRun({ scrape, n: 1 }, 'account', 5, 'run1', { status: 'RUNNING' }, subject);
    expect([await save(), await save()]).toEqual(['saved', 'known']);
    expect(await events()).toEqual([
      'scrape.started {"server":"apify","tool":"a/b","runId":"run1","attempt":1}',
    ]);
    const claim = keys.claim('account', 'run1');
    expect([await redis.get(claim), await redis.pttl(claim)]).toEqual([scrape, -1]);
  });

  it('a page is told of once', async () => {
    const from = { lowest: 'running', highest: 'reading' } as const;
    const page = (pages: number) =>
      store.advance(
        { scrape, n: 1 },
        lock,
        from,
        'reading',
        { pages, items: 10 * pages, faults: null },
        {
          type: 'page.written',
          id: 'one',
          batch: 'default',
          data: { page: pages - 1 },
        },
      );
    expect([await page(1), await page(1), await page(2)]).toEqual(['done', 'done', 'done']);
    expect((await events()).slice(1)).toEqual(['page.written {"page":0}', 'page.written {"page":1}']);
  });

  it('the next attempt leaves the run of the last one claimed for a while', async () => {
    await store.advance({ scrape, n: 1 }, lock, { lowest: 'queued', highest: 'reading' }, 'decided', {});
    const attempt = (await store.load(scrape)).attempt;
    if (attempt === null) throw new Error('no attempt');
    expect(await store.nextAttempt(attempt, lock, null, null, 60_000)).toBe(true);
    const left = await redis.pttl(keys.claim('account', 'run1'));
    expect(left).toBeGreaterThan(50_000);
    expect(left).toBeLessThanOrEqual(60_000);
  });
});
