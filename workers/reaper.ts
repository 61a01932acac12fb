import { phaseRank } from '../src/run/attempt.js';
import { splitJobKey } from '../src/scrape/identity.js';
import type { WorkerContext } from './context.js';

/**
 * Looks at every slot a run holds: one whose attempt has seen the run's end, or is gone, is released; a scrape whose
 * public job was removed by its producer is cancelled, so that its run does not go on unowned.
 */
export async function reapSlots(ctx: WorkerContext): Promise<void> {
  for (const server of Object.keys(ctx.config.servers)) {
    const { slots } = ctx.server(server);
    for (const scrape of await slots.holders()) {
      const { attempt } = splitJobKey(scrape) === null ? { attempt: null } : await ctx.store.load(scrape);
      if (attempt === null || phaseRank(attempt.phase) > phaseRank('aborting')) {
        await slots.release(scrape);
        ctx.log.warn({ event: 'slot.reaped', scrapeId: scrape, server }, 'a slot without a run was released');
        continue;
      }
      if (attempt.cancelledAt !== null || (await ctx.queues.publicExists(attempt.jobId))) continue;
      ctx.log.warn(
        { event: 'scrape.removed', scrapeId: scrape, server },
        'its job was removed; aborting its run',
      );
      await ctx.cancel(scrape);
    }
  }
}
