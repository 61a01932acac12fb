import { setTimeout as delay } from 'node:timers/promises';
import type { WorkerContext } from './context.js';

/** Crashes in a row without getting on that make a job a suspect. One is the ordinary death of a worker. */
const suspectFrom = 2;
/** Crashes of a suspect that had the turn. What else its process had in hand did not: none of it is a suspect. */
const crashesInTurnAllowed = 3;
/** All suspects of a crash come back at once; those that must wait are put away within this time. */
const clearMs = 100;
/** In lock times; work that may last longer says so. */
const shortestBound = 4;
/** How long the crashes of suspects are remembered after the last one. */
const rememberSecs = 24 * 3_600;

export type Turn =
  | { readonly do: 'go'; readonly done: () => Promise<void> }
  | { readonly do: 'wait'; readonly ms: number }
  /** This job is what crashes its workers (design B1, poison). */
  | { readonly do: 'give_up' };

const free: Turn = { do: 'go', done: async () => {} };

/**
 * A crash takes down whatever its process had in hand, and all of that comes back at once: the job that crashes its
 * workers would drag the same innocent ones along until they count as poisonous too. So only one suspect at a time is
 * worked on, of all queues and fleet-wide, since a process works on all queues, and only crashes of the one whose turn
 * it is are held against it: the innocent get on and are none any more, the poisonous one crashes alone. A turn lasts
 * as long as the work does, and a lock's time after a crash.
 *
 * @param longestMs how long the work may last; what hangs for longer goes on while others have their turn
 */
export async function takeTurn(
  ctx: Pick<WorkerContext, 'redis' | 'keys' | 'timing' | 'now'>,
  queue: string,
  job: { readonly id: string; readonly token: string },
  crashes: number,
  longestMs: number,
): Promise<Turn> {
  if (crashes < suspectFrom) return free;
  const { redis, keys, timing } = ctx;
  const holder = `${queue} ${job.id}`;
  // With the token of its lock: a worker that wakes up with a job it has lost must not end its successor's turn.
  const turn = `${holder} ${job.token}`;
  const won = await redis.set(keys.suspect, turn, 'PX', timing.lockMs, 'NX');
  if (won !== 'OK') {
    const has = await redis.get(keys.suspect);
    if (!has?.startsWith(`${holder} `)) {
      return { do: 'wait', ms: Math.ceil((timing.lockMs / 15) * (1 + 2 * Math.random())) };
    }
    await redis.set(keys.suspect, turn, 'PX', timing.lockMs);
  }
  const end = () => redis.trawlEndTurn(keys.suspect, keys.suspectTurns, turn, holder);
  const turns = await redis.hincrby(keys.suspectTurns, holder, 1);
  await redis.expire(keys.suspectTurns, rememberSecs);
  if (turns > crashesInTurnAllowed) {
    await end();
    return { do: 'give_up' };
  }
  await delay(clearMs);
  const renewUntil = ctx.now() + Math.max(longestMs, shortestBound * timing.lockMs);
  const renewal = setInterval(() => {
    if (ctx.now() > renewUntil) return;
    // A renewal that fails is made good by the next, or the turn ends: then two suspects meet, which costs a crash.
    redis
      .get(keys.suspect)
      .then((now) => (now === turn ? redis.pexpire(keys.suspect, timing.lockMs) : 0))
      .catch(() => {});
  }, timing.lockMs / 3);
  return {
    do: 'go',
    async done() {
      clearInterval(renewal);
      // Also when the turn was over before the work was: it did not crash.
      if ((await end()) === 0 && ctx.now() > renewUntil) await redis.hdel(keys.suspectTurns, holder);
    },
  };
}
