import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Keys, stageQueue, stages } from '../../src/queue/names.js';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import type { LedgerEntry, SimRun, SimStats } from '../sim/index.js';
import { readTold, type Told } from './events.js';
import type { Struck } from './nemesis.js';
import { prefix, type Submitted, server } from './producer.js';
import type { SimProcess } from './sim-process.js';

/** An item as the simulator marks it. */
export interface Item {
  readonly index: number;
  readonly run: string;
}

/** A scrape's directory; `archived` are the items of earlier attempts. */
export interface OnDisk {
  readonly outcome: OutcomeDocument | null;
  readonly items: readonly Item[];
  readonly pages: number;
  readonly archived: readonly (readonly Item[])[];
}

export interface PublicJob {
  readonly finished: boolean;
  readonly failedReason: string | null;
  readonly returnvalue: unknown;
  readonly progress: unknown;
}

/** All that is left of a run when it has come to rest: the ledger, Redis, the disk. */
export interface Evidence {
  readonly submitted: readonly Submitted[];
  readonly struck: readonly Struck[];
  readonly runs: readonly SimRun[];
  readonly starts: readonly LedgerEntry[];
  readonly aborts: readonly LedgerEntry[];
  /** Times of polls and starts: signs of life. */
  readonly beats: readonly number[];
  readonly stats: SimStats;
  /** Run id → the scrape that claimed it. */
  readonly owners: ReadonlyMap<string, string>;
  readonly told: Told;
  readonly batches: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly jobs: ReadonlyMap<string, PublicJob>;
  readonly disk: ReadonlyMap<string, OnDisk>;
  readonly slots: readonly string[];
  /** Jobs left in the queues of stages, and jobs at the intake that were refused or not taken. */
  readonly leftovers: readonly string[];
}

export async function gather(parts: {
  readonly redisUrl: string;
  readonly sim: SimProcess;
  readonly results: string;
  readonly submitted: readonly Submitted[];
  readonly struck: readonly Struck[];
}): Promise<Evidence> {
  const { sim, submitted, struck } = parts;
  const redis = new Redis(parts.redisUrl);
  const keys = new Keys(prefix);
  try {
    const beats = await sim.ledger('poll', 'start');
    const disk = new Map<string, OnDisk>();
    for (const { job } of submitted) {
      disk.set(job.key, await readScrape(join(parts.results, `batch=${job.batch}`, `scrape=${job.id}`)));
    }
    const batches = new Map<string, Record<string, string>>();
    for (const batch of new Set(submitted.map(({ job }) => job.batch))) {
      batches.set(batch, await redis.hgetall(keys.batch(batch)));
    }
    return {
      submitted,
      struck,
      runs: await sim.runs(),
      starts: await sim.ledger('start'),
      aborts: await sim.ledger('abort', 'cancelled'),
      beats: beats.map(({ at }) => at),
      stats: await sim.stats(),
      owners: await readOwners(redis, keys),
      told: await readTold(redis, keys),
      batches,
      jobs: await readJobs(
        redis,
        keys,
        submitted.map(({ job }) => job.key),
      ),
      disk,
      slots: await redis.zrange(keys.slots(server), '0', '-1'),
      leftovers: await readLeftovers(redis, keys),
    };
  } finally {
    redis.disconnect();
  }
}

async function readOwners(redis: Redis, keys: Keys): Promise<Map<string, string>> {
  const owners = new Map<string, string>();
  const head = keys.claim('', '').slice(0, -1);
  let cursor = '0';
  do {
    const [next, found] = await redis.scan(cursor, 'MATCH', `${head}*`, 'COUNT', 1000);
    cursor = next;
    const values = found.length === 0 ? [] : await redis.mget(found);
    for (const [index, key] of found.entries())
      owners.set(key.slice(key.lastIndexOf(':') + 1), values[index] ?? '');
  } while (cursor !== '0');
  return owners;
}

export async function readJobs(
  redis: Redis,
  keys: Keys,
  ids: readonly string[],
): Promise<Map<string, PublicJob>> {
  const jobs = new Map<string, PublicJob>();
  for (const id of ids) {
    const hash = await redis.hgetall(keys.job('scrape', id));
    if (hash.timestamp === undefined) continue;
    jobs.set(id, {
      finished: hash.finishedOn !== undefined,
      failedReason: hash.failedReason ?? null,
      returnvalue: parse(hash.returnvalue),
      progress: parse(hash.progress),
    });
  }
  return jobs;
}

export async function readLeftovers(redis: Redis, keys: Keys): Promise<string[]> {
  const left: string[] = [];
  for (const stage of stages) {
    const queue = keys.queue(stageQueue(stage, server));
    for (const set of ['delayed', 'prioritized', 'failed', 'completed', 'waiting-children']) {
      left.push(...(await redis.zrange(`${queue}:${set}`, '0', '-1')));
    }
    for (const list of ['wait', 'active']) left.push(...(await redis.lrange(`${queue}:${list}`, 0, -1)));
  }
  for (const list of ['wait', 'active']) {
    left.push(...(await redis.lrange(`${keys.queue('scrape')}:${list}`, 0, -1)));
  }
  for (const set of ['delayed', 'prioritized', 'waiting-children']) {
    left.push(...(await redis.zrange(`${keys.queue('scrape')}:${set}`, '0', '-1')));
  }
  left.push(...(await redis.lrange(keys.intakeList, 0, -1)));
  for (const [, fields] of await redis.xrange(keys.intakeRejected, '-', '+'))
    left.push(`rejected ${fields.join(' ')}`);
  return left;
}

export async function readScrape(dir: string): Promise<OnDisk> {
  const names: string[] = await readdir(dir).catch(() => []);
  const archived: Item[][] = [];
  const attempts: string[] = await readdir(join(dir, '.attempts')).catch(() => []);
  for (const attempt of attempts) {
    archived.push((await readPages(join(dir, '.attempts', attempt))).items);
  }
  const { items, pages } = await readPages(dir);
  const outcome = names.includes('outcome.json')
    ? (JSON.parse(await readFile(join(dir, 'outcome.json'), 'utf8')) as OutcomeDocument)
    : null;
  return { outcome, items, pages, archived };
}

async function readPages(dir: string): Promise<{ items: Item[]; pages: number }> {
  const names: string[] = await readdir(dir).catch(() => []);
  const pages = names.filter((name) => name.startsWith('page-')).sort();
  const items: Item[] = [];
  for (const page of pages) {
    for (const line of (await readFile(join(dir, page), 'utf8')).split('\n')) {
      if (line === '') continue;
      const { _i, _run } = JSON.parse(line) as { _i: number; _run: string };
      items.push({ index: _i, run: _run });
    }
  }
  return { items, pages: pages.length };
}

function parse(text: string | undefined): unknown {
  return text === undefined || text === '' ? null : (JSON.parse(text) as unknown);
}
