import type { WorkerContext } from './context.js';

const jobsATurn = 1_000;
const turnsAtMost = 20;

/**
 * Settled public jobs past their retention go. BullMQ removes them only when another job ends, so that without this the
 * last batch of a quiet week would stay for ever.
 */
export async function removeOld(ctx: WorkerContext): Promise<void> {
  const { settledMs, failedMs } = ctx.config.keep;
  for (const [state, graceMs] of [
    ['completed', settledMs],
    ['failed', failedMs],
  ] as const) {
    for (let turn = 0; turn < turnsAtMost; turn += 1) {
      const removed = await ctx.queues.public.clean(graceMs, jobsATurn, state);
      if (removed.length < jobsATurn) break;
    }
  }
}
