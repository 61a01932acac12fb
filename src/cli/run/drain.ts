import { parseStageJobId } from '../../queue/names.js';
import { stageJobIds } from '../../queue/status.js';
import { phaseRank } from '../../run/attempt.js';
import type { Fleet } from '../fleet.js';
import type { Tally } from './tally.js';

export interface Flying {
  readonly count: number;
  /** Deadline of the run that may go on longest; null when none is known. */
  readonly latestMs: number | null;
}

/**
 * The scrapes of this run whose run was paid for and that are not settled: what a first Ctrl-C waits for. Those that wait
 * for their start, or for the next attempt, are left to the next `run`.
 *
 * @param seen kept from call to call: between its last stage and its outcome a scrape is in no queue of a stage
 */
export async function flying(
  { redis, keys, servers }: Fleet,
  tally: Tally,
  seen: Set<string>,
): Promise<Flying> {
  for (const server of servers) {
    for (const key of await redis.zrange(keys.slots(server), '0', '-1')) seen.add(key);
    for (const stage of ['poll', 'pages', 'abort'] as const) {
      for (const jobId of await stageJobIds({ redis, keys }, stage, server)) {
        seen.add(parseStageJobId(jobId)?.scrape ?? '');
      }
    }
  }
  const own = [...seen].filter((key) => tally.isOpen(key));
  const pipeline = redis.pipeline();
  for (const key of own) pipeline.hmget(keys.attempt(key), 'ph', 'dl');
  let count = 0;
  let latestMs: number | null = null;
  for (const [error, reply] of (await pipeline.exec()) ?? []) {
    if (error) throw error;
    const [phase, deadline] = reply as [string | null, string | null];
    const rank = Number(phase ?? 0);
    if (rank < phaseRank('running') || rank > phaseRank('decided')) continue;
    count += 1;
    if (deadline !== null) latestMs = Math.max(latestMs ?? 0, Number(deadline));
  }
  return { count, latestMs };
}
