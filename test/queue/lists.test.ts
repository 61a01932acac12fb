/** The lists of the page: bounded, complete when nothing moves, and no dearer with 100,000 scrapes. */
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AttemptStore } from '../../src/queue/attempt-store.js';
import { listInProgress, type ProgressState } from '../../src/queue/in-progress.js';
import { Keys } from '../../src/queue/names.js';
import { LatestWarnings, listFailures, listWarnings } from '../../src/queue/problems.js';
import { type ScriptedRedis, withScripts } from '../../src/queue/scripts.js';
import { RedisProcess } from '../redis/redis-process.js';

let server: RedisProcess;
let redis: ScriptedRedis;
const keys = new Keys('{trawl}');
beforeAll(async () => {
  server = await RedisProcess.start();
  redis = withScripts(new Redis(server.url, { maxRetriesPerRequest: 1 }));
});
afterEach(() => redis.flushall());
afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

const document = (id: string, outcome: string) =>
  JSON.stringify({ id, batch: 'b', outcome, message: `${id} ended`, finishedAt: new Date(0).toISOString() });

/** Commands that `work` sends, by name. */
async function commandsOf(work: () => Promise<unknown>): Promise<string[]> {
  const before = await counts();
  await work();
  const after = await counts();
  return [...after].flatMap(([name, calls]) =>
    calls > (before.get(name) ?? 0) && name !== 'info' ? [name] : [],
  );
}

async function counts(): Promise<Map<string, number>> {
  const text = await redis.info('commandstats');
  return new Map(
    [...text.matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm)].map((m) => [m[1] ?? '', Number(m[2])]),
  );
}

async function allOf(state: ProgressState, limit: number, servers = ['one', 'two']): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | null = null;
  do {
    const page = await listInProgress(
      { redis, keys, store: new AttemptStore(redis, keys) },
      { servers, state, cursor, limit },
    );
    if (page === null) throw new Error('a cursor of ours was not known');
    expect(page.scrapes.length).toBeLessThanOrEqual(limit);
    found.push(...page.scrapes.map(({ server: name, id }) => `${name} ${id}`));
    cursor = page.next;
  } while (cursor !== null);
  return found;
}

describe('scrapes in progress', () => {
  it('come from every place that a job can be in, each once, page by page', async () => {
    await redis.rpush('{trawl}:poll-one:active', 'b.a-1-poll');
    await redis.rpush('{trawl}:poll-one:wait', 'b.b-1-poll', 'b.c-1-poll');
    await redis.zadd('{trawl}:poll-one:delayed', 1, 'b.d-1-poll', 2, 'b.e.f-12-poll');
    await redis.zadd('{trawl}:abort-one:delayed', 1, 'b.g-2-abort');
    await redis.rpush('{trawl}:abort-two:wait', 'b.h-1-abort', 'orphan-run1');
    await redis.rpush('{trawl}:pages-two:active', 'b.i-1-pages');
    await redis.zadd('{trawl}:start-two:prioritized', 1, 'b.j-1-start');
    const running = ['one a', 'one b', 'one c', 'one d', 'one e.f', 'one g', 'two h'];
    for (const limit of [1, 2, 3, 100]) expect(await allOf('running', limit)).toEqual(running);
    expect(await allOf('reading', 2)).toEqual(['two i']);
    expect(await allOf('waiting', 2)).toEqual(['two j']);
    expect(await allOf('running', 2, ['two'])).toEqual(['two h']);
  });

  it('say where an attempt stands, without its input', async () => {
    await redis.rpush('{trawl}:poll-one:wait', 'b.a-1-poll', 'b.b-1-poll');
    await redis.hset(keys.attempt('b.a'), {
      n: 1,
      ph: 2,
      at: 5,
      rid: 'run1',
      ic: 7,
      ak: '{"input":"secret"}',
    });
    const page = await listInProgress(
      { redis, keys, store: new AttemptStore(redis, keys) },
      { servers: ['one'], state: 'running', cursor: null, limit: 10 },
    );
    expect(page?.scrapes.map(({ attempt }) => attempt)).toEqual([
      expect.objectContaining({ phase: 'running', runId: 'run1', itemCount: 7, asked: null }),
      null,
    ]);
  });

  it('cost the same with 100,000 runs in flight', { timeout: 60_000 }, async () => {
    for (let base = 0; base < 100_000; base += 10_000) {
      const members = Array.from({ length: 10_000 }, (_, n) => [base + n, `b.s${base + n}-1-poll`]).flat();
      await redis.zadd('{trawl}:poll-one:delayed', ...(members as [number, string]));
    }
    const deps = { redis, keys, store: new AttemptStore(redis, keys) };
    const at = (cursor: string) =>
      listInProgress(deps, { servers: ['one', 'two'], state: 'running', cursor, limit: 50 });
    const far = await at('99000');
    expect(far).toMatchObject({ total: 100_000, next: '99050' });
    expect(far?.scrapes[0]?.id).toBe('s99000');
    const used = await commandsOf(() => at('50000'));
    expect(used.sort()).toEqual(['hmget', 'llen', 'zcard', 'zrange']);
  });

  it.each(['x', '-1', '1.5', '9999999999', '+inf'])('cursor %j is none of ours', async (cursor) => {
    const deps = { redis, keys, store: new AttemptStore(redis, keys) };
    expect(await listInProgress(deps, { servers: ['one'], state: 'running', cursor, limit: 1 })).toBeNull();
  });
});

describe('failures', () => {
  it('are paged newest first, also when many ended in one millisecond', async () => {
    const ends = [5, 9, 9, 9, 9, 9, 7, 7, 1];
    for (const [n, at] of ends.entries()) {
      await redis.zadd('{trawl}:scrape:failed', at, `b.f${n}`);
      await redis.hset(keys.job('scrape', `b.f${n}`), 'progress', document(`f${n}`, 'failed'));
    }
    for (const limit of [1, 2, 3, 4, 20]) {
      const found: string[] = [];
      let cursor: string | null = null;
      do {
        const page = await listFailures({ redis, keys }, cursor, limit);
        if (page === null) throw new Error('a cursor of ours was not known');
        found.push(...page.outcomes.map(({ id }) => id));
        cursor = page.next;
      } while (cursor !== null);
      expect([limit, found]).toEqual([limit, ['f5', 'f4', 'f3', 'f2', 'f1', 'f7', 'f6', 'f0', 'f8']]);
    }
  });

  it('without a document are left out, and a foreign cursor is known as one', async () => {
    await redis.zadd('{trawl}:scrape:failed', 1, 'b.a', 2, 'b.b', 3, 'b.c');
    await redis.hset(keys.job('scrape', 'b.a'), 'progress', '{"half":');
    await redis.hset(keys.job('scrape', 'b.b'), 'progress', '7');
    expect(await listFailures({ redis, keys }, null, 10)).toEqual({ outcomes: [], next: null });
    for (const cursor of ['1', '-1-0', '1-', 'a-b', '+inf-0']) {
      expect(await listFailures({ redis, keys }, cursor, 10)).toBeNull();
    }
  });
});

describe('warnings', () => {
  async function events(outcomes: readonly string[]): Promise<void> {
    const pipeline = redis.pipeline();
    for (const [n, outcome] of outcomes.entries()) {
      pipeline.xadd(
        keys.events,
        `${n + 1}-0`,
        'type',
        'scrape.settled',
        'id',
        `s${n}`,
        'batch',
        'b',
        'data',
        document(`s${n}`, outcome),
      );
    }
    await pipeline.exec();
  }

  it('are found among everything else that happens, newest first', async () => {
    await events(['empty', 'succeeded', 'failed', 'low_count', 'cancelled', 'capped']);
    await redis.xadd(keys.events, '100-0', 'type', 'page.written', 'id', 's9', 'batch', 'b', 'data', '{}');
    const first = await listWarnings({ redis, keys }, null, 2);
    expect(first?.outcomes.map(({ id }) => id)).toEqual(['s5', 's3']);
    const second = await listWarnings({ redis, keys }, first?.next ?? null, 2);
    expect(second?.outcomes.map(({ id }) => id)).toEqual(['s0']);
    expect(second?.next).toBeNull();
    expect(await listWarnings({ redis, keys }, '+', 2)).toBeNull();
  });

  it('the newest are read again only when something has happened', async () => {
    await events(['empty', ...Array<string>(1_000).fill('succeeded')]);
    const latest = new LatestWarnings({ redis, keys });
    const first = await latest.list(10);
    const [before] = [(await counts()).get('xrevrange') ?? 0];
    expect(await latest.list(10)).toBe(first);
    expect(((await counts()).get('xrevrange') ?? 0) - before).toBe(1);
    await redis.xadd(keys.events, '2000-0', 'type', 'scrape.settled', 'data', document('new', 'capped'));
    expect((await latest.list(10))?.outcomes.map(({ id }) => id)).toEqual(['new', 's0']);
  });

  it('one call reads a bounded part of the stream, and says where the next goes on', async () => {
    await events(['empty', ...Array<string>(5_000).fill('succeeded')]);
    const pages: number[] = [];
    let cursor: string | null = null;
    do {
      const page = await listWarnings({ redis, keys }, cursor, 10);
      if (page === null) throw new Error('a cursor of ours was not known');
      pages.push(page.outcomes.length);
      cursor = page.next;
    } while (cursor !== null);
    expect(pages).toEqual([0, 0, 1]);
  });
});
