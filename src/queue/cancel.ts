import type { AttemptStore } from './attempt-store.js';
import type { Keys } from './names.js';
import { parseStageJobId, publicQueue, type Stage, stageQueue } from './names.js';
import { parseServer } from './public-data.js';
import type { Queues } from './queues.js';
import type { ScriptedRedis } from './scripts.js';

export interface CancelDeps {
  readonly redis: ScriptedRedis;
  readonly keys: Keys;
  readonly queues: Queues;
  readonly store: AttemptStore;
  readonly servers: readonly string[];
}

export type Cancelled = 'cancelling' | 'settled' | 'unknown';

/** A mark on a scrape that nobody has heard of lives this long. */
const unknownMarkMs = 60_000;
/** A job that waits in the public queue is taken up some time, or removed by its producer. */
const newMarkMs = 30 * 24 * 3_600_000;
const rounds = 20;
const roundMs = 100;

/**
 * Cancels one scrape, in whatever stage it is, from any process (design B1, Cancel): the mark in the hash first, then, in
 * rounds until the attempt has got the message: the abort child before the removal of the job that waits, so that the
 * public job never finds itself without children.
 *
 * @returns `settled` when it had ended before; `unknown` when there is no such scrape
 */
export async function cancelScrape(deps: CancelDeps, scrape: string): Promise<Cancelled> {
  const { redis, keys, queues } = deps;
  const id = scrape.slice(scrape.indexOf('.') + 1);
  const phase = await redis.trawlCancel(
    keys.attempt(scrape),
    keys.waiting(scrape),
    keys.job(publicQueue, scrape),
    keys.job(publicQueue, id),
    unknownMarkMs,
    scrape,
    newMarkMs,
  );
  if (phase === '6') return 'settled';
  if (phase === '') return 'unknown';
  if (phase === 'new') {
    // The mark is found when its job is taken; one that its producer delayed is taken now.
    for (const jobId of [scrape, id]) await queues.promotePublic(jobId);
    return 'cancelling';
  }
  for (let round = 0; round < rounds; round += 1) {
    const { attempt } = await deps.store.load(scrape);
    if (attempt === null || attempt.phase === 'decided' || attempt.phase === 'done') break;
    const server = attempt.spec?.server ?? parseServer(await queues.publicData(attempt.jobId), deps.servers);
    if (server === null) break;
    if (attempt.runId === null) {
      if (await queues.removeStage('start', server, scrape, attempt.n)) break;
    } else {
      await queues.addStage('abort', attempt, server);
      const stage: Stage = attempt.phase === 'reading' ? 'pages' : 'poll';
      if (await queues.removeStage(stage, server, scrape, attempt.n)) break;
      if (attempt.phase === 'aborting') break;
    }
    await new Promise((resolve) => setTimeout(resolve, roundMs));
  }
  return 'cancelling';
}

/**
 * Cancels everything of a batch that was submitted until now. One flag decides for all of it, checked whenever a job is
 * taken; the jobs that wait are then brought to that check, so that nothing has to fall due first.
 *
 * @param onProgress how many waiting scrapes were reached so far
 */
export async function cancelBatch(
  deps: CancelDeps,
  batch: string,
  now: number,
  onProgress: (reached: number) => void = () => {},
): Promise<number> {
  const { redis, keys } = deps;
  await redis.hset(keys.batch(batch), 'cx', now);
  // A batch of which nothing was ever accepted has no lifetime yet.
  if ((await redis.pttl(keys.batch(batch))) < 0) await redis.pexpire(keys.batch(batch), newMarkMs);
  const scrapes = new Set<string>();
  for (const server of deps.servers) {
    for (const stage of ['start', 'poll', 'pages'] as const) {
      for await (const jobId of waitingJobs(deps, stageQueue(stage, server), `${batch}.*`)) {
        const id = parseStageJobId(jobId);
        if (id !== null) scrapes.add(id.scrape);
      }
    }
  }
  let reached = 0;
  const queue = [...scrapes];
  const lanes = Array.from({ length: 32 }, async () => {
    for (let scrape = queue.pop(); scrape !== undefined; scrape = queue.pop()) {
      await cancelScrape(deps, scrape);
      reached += 1;
      onProgress(reached);
    }
  });
  await Promise.all(lanes);
  return reached;
}

async function* waitingJobs(deps: CancelDeps, queue: string, match: string): AsyncGenerator<string> {
  for (const set of ['delayed', 'prioritized']) {
    let cursor = '0';
    do {
      const [next, found] = await deps.redis.zscan(
        `${deps.keys.queue(queue)}:${set}`,
        cursor,
        'MATCH',
        match,
        'COUNT',
        1000,
      );
      cursor = next;
      for (let index = 0; index < found.length; index += 2) yield found[index] as string;
    } while (cursor !== '0');
  }
  const prefix = match.slice(0, -1);
  for (const jobId of await deps.redis.lrange(`${deps.keys.queue(queue)}:wait`, 0, -1)) {
    if (jobId.startsWith(prefix)) yield jobId;
  }
}
