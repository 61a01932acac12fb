import type { ServerConfig } from '../config.js';
import type { Attempt } from '../run/attempt.js';
import { isId, splitJobKey } from '../scrape/identity.js';
import { type Outcome, type OutcomeDocument, outcomes } from '../scrape/types.js';
import type { Sink } from '../sinks/contract.js';
import type { AttemptStore } from './attempt-store.js';
import type { Holds, ServerState } from './holds.js';
import { outcomeOf } from './known.js';
import type { Keys } from './names.js';
import { publicQueue, stageQueue } from './names.js';
import type { Queues } from './queues.js';
import type { ScriptedRedis } from './scripts.js';

export interface StatusDeps {
  readonly redis: ScriptedRedis;
  readonly keys: Keys;
  readonly queues: Queues;
  readonly store: AttemptStore;
  readonly holds: Holds;
  readonly sink: Pick<Sink, 'find'>;
}

export interface ServerOverview {
  readonly name: string;
  readonly runsInFlight: number;
  readonly runSlots: number;
  /** Scrapes that wait for their start. */
  readonly waiting: number;
  /** Of these, set aside because their tool is held or paused. */
  readonly parked: number;
  readonly state: ServerState;
}

const queueStates = ['waiting', 'prioritized', 'active', 'delayed', 'waiting-children', 'failed'] as const;
export type QueueCounts = Readonly<Record<(typeof queueStates)[number], number>> & { readonly name: string };

/** Totals of a batch as Redis counts them: exact across crashes (design A8). */
export interface BatchCounts {
  readonly batch: string;
  readonly submitted: number;
  readonly settled: number;
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
  readonly items: number;
  /** null: nothing is known of the cost of any. */
  readonly usageUsd: number | null;
  /** First submission, milliseconds since 1970. */
  readonly since: number | null;
  readonly cancelledAt: number | null;
}

/** More batches than this are not read: the list is for people. */
const maxBatches = 1_000;

export async function serverOverviews(
  deps: StatusDeps,
  servers: Readonly<Record<string, ServerConfig>>,
): Promise<ServerOverview[]> {
  return Promise.all(
    Object.values(servers).map(async ({ name, limits }) => {
      const [runsInFlight, counts, parked, state] = await Promise.all([
        deps.redis.zcount(deps.keys.slots(name), '+inf', '+inf'),
        deps.queues.stage('start', name).getJobCounts('waiting', 'prioritized', 'delayed'),
        deps.holds.parkedCount(name),
        deps.holds.state(name),
      ]);
      const waiting = Object.values(counts).reduce((sum, count) => sum + count, 0);
      return { name, runsInFlight, runSlots: limits.runs, waiting, parked, state };
    }),
  );
}

export async function queueCounts(queues: Queues): Promise<QueueCounts[]> {
  return Promise.all(
    queues.all.map(async (queue) => {
      const counts = await queue.getJobCounts(...queueStates);
      const entries = queueStates.map((state) => [state, counts[state] ?? 0] as const);
      return { name: queue.name, ...Object.fromEntries(entries) } as QueueCounts;
    }),
  );
}

/** Scrapes that were submitted and that no worker has looked at yet. */
export async function publicBacklog(queues: Queues): Promise<number> {
  const counts = await queues.public.getJobCounts('waiting', 'prioritized', 'delayed');
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** Batches, the newest first, at most 1,000. */
export async function listBatches(redis: ScriptedRedis, keys: Keys): Promise<BatchCounts[]> {
  const head = keys.batch('');
  const names: string[] = [];
  for await (const key of scan(redis, `${head}*`)) {
    names.push(key.slice(head.length));
    if (names.length >= maxBatches) break;
  }
  const found = await Promise.all(names.map((name) => readBatch(redis, keys, name)));
  return found
    .filter((batch): batch is BatchCounts => batch !== null)
    .sort((a, b) => (b.since ?? 0) - (a.since ?? 0));
}

/** null when Redis knows no scrape of that batch that was accepted. */
export async function readBatch(
  redis: ScriptedRedis,
  keys: Keys,
  batch: string,
): Promise<BatchCounts | null> {
  const hash = await redis.hgetall(keys.batch(batch));
  if (hash.submitted === undefined) return null;
  const count = (field: string) => Math.max(0, Number(hash[field] ?? 0) || 0);
  const counted = outcomes
    .map((outcome) => [outcome, count(`o:${outcome}`)] as const)
    .filter(([, value]) => value > 0);
  return {
    batch,
    submitted: count('submitted'),
    settled: count('settled'),
    outcomes: Object.fromEntries(counted),
    items: count('items'),
    usageUsd: hash.usage === undefined ? null : count('usage'),
    since: hash.since === undefined ? null : Number(hash.since),
    cancelledAt: hash.cx === undefined ? null : Number(hash.cx),
  };
}

/** Whether anything of a batch is in Redis, accepted or not. */
export async function batchExists(redis: ScriptedRedis, keys: Keys, batch: string): Promise<boolean> {
  if ((await redis.hexists(keys.batch(batch), 'submitted')) === 1) return true;
  for await (const _ of scan(redis, keys.job(publicQueue, `${batch}.*`))) return true;
  return false;
}

/** All that is known of one scrape. */
export interface ScrapeStatus {
  readonly key: string;
  readonly batch: string;
  readonly id: string;
  /** null: no worker has looked at it yet, or Redis has forgotten it. */
  readonly attempt: Attempt | null;
  /** State of the public job; `unknown` when it is gone. */
  readonly jobState: string;
  readonly outcome: OutcomeDocument | null;
}

/** null when neither Redis nor the disk knows it. */
export async function scrapeStatus(
  deps: StatusDeps,
  batch: string,
  id: string,
): Promise<ScrapeStatus | null> {
  const key = `${batch}.${id}`;
  const { attempt, published } = await deps.store.load(key);
  const jobId = attempt?.jobId ?? key;
  const jobState = await deps.queues.public.getJobState(jobId);
  // A scrape under way can be looked at while the results are away.
  const ended = published !== null || attempt === null;
  const settled = ended ? await deps.sink.find(batch, id) : null;
  if (attempt === null && jobState === 'unknown' && settled === null) return null;
  let outcome: OutcomeDocument | null = null;
  if (ended) {
    outcome =
      settled?.outcome ?? outcomeOf(await deps.redis.hget(deps.keys.job(publicQueue, jobId), 'progress'));
  }
  return { key, batch, id, attempt, jobState, outcome };
}

/**
 * The scrapes that somebody may mean by `text`: `<batch>.<id>`, or an id of any batch (`batch` given: of that one).
 * Ids may hold dots, so one text can name several.
 */
export async function findScrapes(
  deps: Pick<StatusDeps, 'redis' | 'keys'>,
  text: string,
  batch: string | undefined,
): Promise<{ batch: string; id: string }[]> {
  if (batch !== undefined) return isId(text) ? [{ batch, id: text }] : [];
  const found = new Map<string, { batch: string; id: string }>();
  const full = splitJobKey(text);
  if (full !== null) found.set(text, full);
  if (isId(text)) {
    for (const head of [deps.keys.attempt(''), deps.keys.job(publicQueue, '')]) {
      for await (const key of scan(deps.redis, `${head}*.${text}`)) {
        const scrape = splitJobKey(key.slice(head.length));
        if (scrape?.id === text) found.set(key.slice(head.length), scrape);
      }
    }
  }
  return [...found.values()];
}

/** Ids of the jobs of a stage, delayed, waiting or in a worker's hands. */
export async function stageJobIds(
  { redis, keys }: Pick<StatusDeps, 'redis' | 'keys'>,
  stage: 'poll' | 'pages' | 'abort',
  server: string,
): Promise<string[]> {
  const queue = keys.queue(stageQueue(stage, server));
  const [delayed, waiting, active] = await Promise.all([
    redis.zrange(`${queue}:delayed`, '0', '-1'),
    redis.lrange(`${queue}:wait`, 0, -1),
    redis.lrange(`${queue}:active`, 0, -1),
  ]);
  return [...delayed, ...waiting, ...active];
}

async function* scan(redis: ScriptedRedis, match: string): AsyncGenerator<string> {
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', match, 'COUNT', 1000);
    cursor = next;
    yield* keys;
  } while (cursor !== '0');
}
