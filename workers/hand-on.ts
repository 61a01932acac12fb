import type { Attempt } from '../src/run/attempt.js';
import type { Scrape } from '../src/scrape/types.js';
import type { WorkerContext } from './context.js';
import { readPublicJob } from './public-job.js';
import type { Step } from './stage.js';

/**
 * The slot goes to the run, the poll job is added; doing it again does nothing. A scrape that was cancelled while its start
 * was under way goes straight to its abort.
 */
export async function handOn(ctx: WorkerContext, step: Step, tool: string): Promise<void> {
  const { slots } = ctx.server(step.server);
  if (await slots.handOn(step.attempt.scrape, tool)) {
    return ctx.queues.addStage('abort', step.attempt, step.server);
  }
  await ctx.queues.addStage('poll', step.attempt, step.server, { delayMs: ctx.config.poll.intervalMs });
}

/** The scrape behind an attempt, as its public job says it; `removed` when its producer took that away. */
export async function readStartJob(
  ctx: WorkerContext,
  attempt: Attempt,
): Promise<{ readonly scrape: Scrape | null; readonly removed: boolean; readonly message: string }> {
  const raw = await ctx.queues.publicData(attempt.jobId);
  if (raw === null) return { scrape: null, removed: true, message: '' };
  const read = readPublicJob(ctx, attempt.jobId, JSON.parse(raw));
  return read.ok
    ? { scrape: read.scrape, removed: false, message: '' }
    : { scrape: null, removed: false, message: read.message };
}
