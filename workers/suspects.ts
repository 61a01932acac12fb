import type { WorkerContext } from './context.js';

/** Crashes in a row without getting on that make a job a suspect. One is the ordinary death of a worker. */
const suspectFrom = 2;

export type Turn =
  | { readonly do: 'go'; readonly done: () => Promise<void> }
  | { readonly do: 'wait'; readonly ms: number };

const free: Turn = { do: 'go', done: async () => {} };

/**
 * A crash takes down whatever its process had in hand, and all of that comes back at once: the job that crashes its
 * workers would drag the same innocent ones along until they count as poisonous too. So of the suspects of a queue only
 * one at a time is worked on, fleet-wide: the innocent get on and are none any more, the poisonous one crashes alone.
 */
export async function takeTurn(
  ctx: WorkerContext,
  queue: string,
  jobId: string,
  crashes: number,
): Promise<Turn> {
  if (crashes < suspectFrom) return free;
  const { redis, keys, timing } = ctx;
  const key = keys.suspect(queue);
  const won = await redis.set(key, jobId, 'PX', timing.lockMs, 'NX');
  if (won !== 'OK' && (await redis.get(key)) !== jobId) {
    return { do: 'wait', ms: Math.ceil((timing.lockMs / 15) * (1 + 2 * Math.random())) };
  }
  return {
    do: 'go',
    async done() {
      if ((await redis.get(key)) === jobId) await redis.del(key);
    },
  };
}
