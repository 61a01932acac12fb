import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '../../src/logger.js';
import { createMetrics } from '../../src/metrics/index.js';
import { intakeGroup } from '../../src/queue/intake-stream.js';
import { Keys } from '../../src/queue/names.js';
import { Queues } from '../../src/queue/queues.js';
import { withScripts } from '../../src/queue/scripts.js';
import { createFileSink } from '../../src/sinks/file.js';
import { Intake, type IntakeContext, type IntakeOptions } from '../../workers/intake.js';
import { Bench, yellowPages } from './harness.js';

let bench: Bench;
let keys: Keys;
let serial = 0;
/** What all intakes of the tests share. */
let base: Omit<IntakeContext, 'owner' | 'config'>;
const logged: string[] = [];

type Way = 'stream' | 'list';
const ways: Way[] = ['stream', 'list'];

const job = (extra: Record<string, unknown> = {}) => ({
  tool: yellowPages,
  input: { search: 'plumber', location: 'Austin, TX' },
  ...extra,
});
const named = (count: number, head: string) =>
  Array.from({ length: count }, (_, index) => JSON.stringify(job({ id: `${head}-${index}` })));

async function send(way: Way, texts: readonly (string | Buffer)[]): Promise<void> {
  const pipeline = bench.client.pipeline();
  for (const text of texts) {
    if (way === 'stream') pipeline.xadd(keys.intakeStream, '*', 'job', text);
    else pipeline.lpush(keys.intakeList, text);
  }
  await pipeline.exec();
}

/** Until it holds; a test that waits in vain ends at its timeout with what was expected. */
async function until<T>(read: () => Promise<T> | T, holds: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read();
    if (holds(value)) return value;
    await delay(10);
  }
}

/** Ids in the public queue, the first submitted first. */
const waiting = () => bench.queue.getRanges(['waiting'], 0, -1, true);
const left = async () =>
  (await bench.client.xlen(keys.intakeStream)) + (await bench.client.llen(keys.intakeList));

interface Rejection {
  readonly source: string;
  readonly reason: string;
  readonly job: string;
}

async function rejections(): Promise<Rejection[]> {
  const entries = await bench.client.xrange(keys.intakeRejected, '-', '+');
  return entries.map(([, fields]) => {
    const pairs = Array.from({ length: fields.length / 2 }, (_, i) => fields.slice(2 * i, 2 * i + 2));
    return Object.fromEntries(pairs) as Rejection;
  });
}

const running = new Set<Intake>();

/** An intake as one more process would have it; no workers run, so what is submitted stays to be looked at. */
function intake(options: IntakeOptions & { backlog?: number } = {}): Intake {
  const { backlog = 100_000 } = options;
  serial += 1;
  const { config } = bench;
  const one = new Intake(
    { ...base, owner: `intake-${serial}`, config: { ...config, intake: { ...config.intake, backlog } } },
    { pollMs: 20, ...options },
  );
  running.add(one);
  one.start();
  return one;
}

async function stopped(one: Intake): Promise<void> {
  running.delete(one);
  await one.stop();
}

/** Nothing in hand, no consumer, no owner, nothing waiting in the sources. */
async function nothingLeft(): Promise<void> {
  expect(await left()).toBe(0);
  const found = await bench.client.keys(`${keys.intakeList}*`);
  expect(found.filter((key) => !key.endsWith(':count'))).toEqual([]);
}

beforeAll(async () => {
  bench = await Bench.open({ config: { limits: { inputBytes: 4096 } } });
  keys = new Keys(bench.config.prefix);
  const redis = withScripts(new Redis(bench.redis.url, { maxRetriesPerRequest: null }));
  const queues = new Queues(redis, keys, ['apify'], () => {});
  const log = createLogger({ level: 'warn', destination: { write: (line) => logged.push(line) } });
  base = {
    redis,
    keys,
    queues,
    log,
    sink: createFileSink({ dir: bench.config.results.dir, gzip: false, log }),
    metrics: createMetrics({ version: 'test', servers: { apify: { tools: [yellowPages] } } }),
    now: Date.now,
  };
  bench.onClose(async () => {
    await queues.close();
    redis.disconnect();
  });
});
afterEach(async () => {
  await Promise.all([...running].map(stopped));
  await bench.client.flushall();
  logged.length = 0;
});
afterAll(() => bench.close());

describe.each(ways)('jobs in the intake %s', { timeout: 60_000 }, (way) => {
  it('are submitted in the order they came, and leave nothing behind', async () => {
    const texts = named(500, 'a');
    await send(way, texts);
    const one = intake();
    const ids = await until(waiting, (found) => found.length === 500);
    expect(ids).toEqual(texts.map((_, index) => `default.a-${index}`));
    await stopped(one);
    await nothingLeft();
  });

  it('come late as well, and are seen soon', async () => {
    intake({ pollMs: 250 });
    await delay(50);
    await send(way, named(1, 'late'));
    expect(await until(waiting, (found) => found.length > 0)).toEqual(['default.late-0']);
  });

  it('are each a scrape of their own without an id, also when they are equal', async () => {
    const text = JSON.stringify(job());
    await send(way, [text, text]);
    intake();
    const ids = await until(waiting, (found) => found.length === 2);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(new RegExp(`^default\\.job-${way}-\\d+-\\d+-[0-9a-f]{16}$`));
  });

  it('with a known id start nothing; with another input they are rejected as a conflict', async () => {
    const [text = ''] = named(1, 'twice');
    const other = JSON.stringify(job({ id: 'twice-0', input: { search: 'electrician' } }));
    // Within one turn, and again in later ones.
    await send(way, [text, text, other]);
    intake();
    await until(rejections, (found) => found.length === 1);
    await send(way, [text, other]);
    const found = await until(rejections, (list) => list.length === 2);
    for (const { reason, source } of found) {
      expect(reason).toMatch(/default\.twice-0 is known with another tool, input or server/);
      expect(source).toBe(way);
    }
    await until(left, (count) => count === 0);
    expect(await waiting()).toEqual(['default.twice-0']);
    expect((await bench.queue.getJob('default.twice-0'))?.data.input.search).toBe('plumber');
  });

  it('that cannot be scrapes are rejected with the reason, and the others go on', async () => {
    const huge = Buffer.concat([Buffer.from('{"tool":"'), Buffer.alloc(50_000_000, 'x'), Buffer.from('"}')]);
    const bad: [text: string | Buffer, reason: RegExp][] = [
      ['{"tool": "a/b"', /does not parse as JSON/],
      ['', /Expected one JSON document, found nothing/],
      ['[1]', /job: expected a mapping/],
      ['null', /job: expected a mapping/],
      [JSON.stringify(job({ retrys: 1 })), /retrys: .*retries/],
      [JSON.stringify(job({ tool: 'evil/tool' })), /evil\/tool.* is not on the allow-list/],
      [JSON.stringify(job({ id: '../../etc/passwd' })), /id: expected letters/],
      [JSON.stringify(job({ batch: 'a\u0000b\n' })), /batch: contains a NUL character/],
      [JSON.stringify(job({ deadline: '15 minuets' })), /deadline: .*15 minuets/],
      [JSON.stringify(job({ input: { search: 'x'.repeat(5_000) } })), /at most 4096 bytes/],
      [huge, /at most 69632 bytes, found 50000\d+ bytes/],
      [Buffer.from([0xff, 0x00, 0x1b, 0x5b, 0x32, 0x4a, 0x0a]), /does not parse as JSON/],
      ['{"__proto__": {"tool": "a/b"}, "input": {}}', /holds a key "__proto__"/],
      [`${'['.repeat(30_000)}${']'.repeat(30_000)}`, /expected a mapping/],
    ];
    const good = named(2, 'good');
    await send(way, [good[0] as string, ...bad.map(([text]) => text), good[1] as string]);
    const one = intake();
    const found = await until(rejections, (list) => list.length >= bad.length);
    for (const [index, [text, reason]] of bad.entries()) {
      expect(found[index]?.reason).toMatch(reason);
      expect(found[index]?.reason.length).toBeLessThan(1_500);
      expect(found[index]?.job).toBe(Buffer.from(text).subarray(0, 2_000).toString());
    }
    await until(left, (count) => count === 0);
    expect((await waiting()).sort()).toEqual(['default.good-0', 'default.good-1']);
    await stopped(one);
    await nothingLeft();
    const metrics = await base.metrics.text();
    expect(metrics).toMatch(new RegExp(`trawl_jobs_invalid_total{source="${way}"} \\d+`));
    expect(logged.filter((line) => line.includes('job.invalid')).length).toBeLessThanOrEqual(2 * 6);
  });

  it('stay where they are while the backlog is full, and are taken when there is room', async () => {
    await send(way, named(25, 'b'));
    const one = intake({ backlog: 10 });
    const ids = await until(waiting, (found) => found.length === 10);
    // One more count of the backlog changes nothing.
    await delay(600);
    expect(await waiting()).toEqual(ids);
    expect(await left()).toBe(15);
    await Promise.all(ids.slice(0, 4).map((id) => bench.queue.remove(id)));
    await until(waiting, (found) => found.includes('default.b-13'));
    expect(await waiting()).toHaveLength(10);
    await until(left, (count) => count === 11);
    await stopped(one);
  });

  it('lose nothing when processes stop in the middle, and double nothing', async () => {
    const total = 1_500;
    await send(way, named(total, 'c'));
    for (let round = 0; round < 4; round += 1) {
      const both = [intake(), intake()];
      await until(waiting, (found) => found.length > (round * total) / 10);
      await Promise.all(both.map(stopped));
      const submitted = await waiting();
      expect(submitted.length + (await left())).toBe(total);
    }
    const last = intake();
    const ids = await until(waiting, (found) => found.length >= total);
    expect(new Set(ids).size).toBe(total);
    await stopped(last);
    await nothingLeft();
  });

  it('that a killed process had in hand are another process’s, each once, with the same id', async () => {
    const anonymous = JSON.stringify(job());
    await send(way, [...named(3, 'd'), anonymous]);
    const child = spawn(
      process.execPath,
      [
        '--import',
        'tsx',
        new URL('intake.child.ts', import.meta.url).pathname,
        bench.redis.url,
        keys.prefix,
        way,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [taken] = (await once(child.stdout, 'data')) as [Buffer];
    expect(Number(taken.toString())).toBe(4);
    child.kill('SIGKILL');
    await once(child, 'exit');

    // It may still be alive for all the others know.
    const early = intake();
    await delay(200);
    expect(await waiting()).toEqual([]);
    await stopped(early);

    intake({ claimAfterMs: 100 });
    const ids = await until(waiting, (found) => found.length === 4);
    expect(ids.slice(0, 3)).toEqual(['default.d-0', 'default.d-1', 'default.d-2']);
    await until(left, (count) => count === 0);
    await until(
      () => bench.client.keys(`${keys.intakeList}:taken:*`),
      (found) => found.length === 0,
    );
    expect(await waiting()).toHaveLength(4);
  });

  it('come again when the process could not hand them on', async () => {
    const anonymous = JSON.stringify(job());
    await send(way, [anonymous, anonymous]);
    let refusals = 0;
    const { find } = base.sink;
    const sink = {
      ...base.sink,
      find: async (...args: Parameters<typeof find>) => {
        refusals += 1;
        if (refusals <= 2) throw new Error('the disk is away');
        return base.sink.find(...args);
      },
    };
    const before = base;
    base = { ...base, sink };
    const one = intake();
    base = before;
    const ids = await until(waiting, (found) => found.length === 2);
    expect(new Set(ids).size).toBe(2);
    expect(logged.some((line) => line.includes('the disk is away'))).toBe(true);
    await stopped(one);
    await nothingLeft();
  });

  it('are taken again once Redis obeys again', async () => {
    const one = intake();
    await send(way, named(1, 'e'));
    await until(waiting, (found) => found.length === 1);
    // A key of another type is all it takes for every command to fail.
    const key = way === 'stream' ? keys.intakeStream : keys.intakeList;
    await bench.client.set(key, 'not yours');
    await until(
      () => logged.length,
      (count) => count > 0,
    );
    await bench.client.del(key);
    await send(way, named(2, 'e'));
    expect(await until(waiting, (found) => found.length === 2)).toEqual(['default.e-0', 'default.e-1']);
    await stopped(one);
  });

  it('are accepted many at a time', async () => {
    const total = 1_500;
    await send(way, named(total, 'f'));
    const reads = async () =>
      Number(/total_reads_processed:(\d+)/.exec(await bench.client.info('stats'))?.[1]);
    const before = await reads();
    const one = intake();
    while ((await waiting()).length < total) await delay(50);
    await stopped(one);
    // What bounds the rate is not the clock of this machine but how often Redis is asked.
    expect((await reads()) - before).toBeLessThan(total / 3);
  });
});

describe('the intake stream', () => {
  it('rejects an entry without a job, and says what it holds', async () => {
    await bench.client.xadd(keys.intakeStream, '*', 'url', 'https://example.org', 'n', '1');
    intake();
    const [rejection] = await until(rejections, (found) => found.length === 1);
    expect(rejection).toMatchObject({
      reason: 'Expected a JSON job in the field "job", found no such field.',
      job: 'url https://example.org n 1',
    });
    await until(left, (count) => count === 0);
  });

  it('acknowledges after acceptance only: what is in hand is pending', async () => {
    await send('stream', named(1, 'g'));
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const before = base;
    base = {
      ...base,
      sink: {
        ...base.sink,
        find: async () => {
          await held;
          return null;
        },
      },
    };
    const one = intake();
    base = before;
    const pending = async () => (await bench.client.xpending(keys.intakeStream, intakeGroup)) as [number];
    await until(
      () => pending().catch(() => [0]),
      ([count]) => count === 1,
    );
    expect(await waiting()).toEqual([]);
    release();
    await until(waiting, (found) => found.length === 1);
    await until(left, (count) => count === 0);
    expect((await pending())[0]).toBe(0);
    await stopped(one);
  });

  it('goes on after it was deleted, group and all', async () => {
    intake();
    await send('stream', named(1, 'h'));
    await until(waiting, (found) => found.length === 1);
    await bench.client.del(keys.intakeStream);
    await send('stream', named(2, 'h'));
    expect(await until(waiting, (found) => found.length === 2)).toHaveLength(2);
  });

  it('forgets the consumers of processes that are gone, and entries that were deleted while in hand', async () => {
    await send('stream', named(1, 'i'));
    await bench.client.xgroup('CREATE', keys.intakeStream, intakeGroup, '0');
    for (let index = 0; index < 5; index += 1) {
      await bench.client.xgroup('CREATECONSUMER', keys.intakeStream, intakeGroup, `gone-${index}`);
    }
    const reply = (await bench.client.xreadgroup(
      'GROUP',
      intakeGroup,
      'gone-0',
      'STREAMS',
      keys.intakeStream,
      '>',
    )) as [string, [string, string[]][]][];
    await bench.client.xdel(keys.intakeStream, reply[0]?.[1][0]?.[0] as string);
    intake({ claimAfterMs: 20 });
    const consumers = async () =>
      ((await bench.client.xinfo('CONSUMERS', keys.intakeStream, intakeGroup)) as string[][]).map(
        (info) => info[1],
      );
    await until(consumers, (found) => found.every((name) => !name?.startsWith('gone')));
    expect(((await bench.client.xpending(keys.intakeStream, intakeGroup)) as [number])[0]).toBe(0);
  });
});

describe('a source that is switched off', () => {
  it('is left alone', async () => {
    await send('stream', named(1, 'j'));
    await send('list', named(1, 'k'));
    const { config } = bench;
    const one = new Intake(
      { ...base, owner: 'half', config: { ...config, intake: { ...config.intake, stream: false } } },
      { pollMs: 20 },
    );
    running.add(one);
    one.start();
    expect(await until(waiting, (found) => found.length > 0)).toEqual(['default.k-0']);
    expect(await bench.client.xlen(keys.intakeStream)).toBe(1);
  });
});
