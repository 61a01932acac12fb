import { publicQueue } from '../src/queue/names.js';
import { cleanText } from '../src/scrape/clean-text.js';
import type { WorkerContext } from './context.js';

const excerpt = 1_000;

/**
 * A public job whose data or options are no JSON (its producer wrote the hash by hand) fails in BullMQ's hands before any
 * of ours sees it, comes back as stalled, and would do so for ever. What cannot be read is put in quotes, so that the job
 * is taken and rejected as any other that is no scrape.
 */
export async function mendUnreadable(ctx: WorkerContext, jobId: string): Promise<void> {
  const key = ctx.keys.job(publicQueue, jobId);
  const [data, opts] = await ctx.redis.hmget(key, 'data', 'opts');
  const mended: Record<string, string> = {};
  if (typeof data === 'string' && !isJson(data)) mended.data = JSON.stringify(data.slice(0, excerpt));
  if (typeof opts === 'string' && !isJson(opts)) mended.opts = '{}';
  if (Object.keys(mended).length === 0) return;
  if ((await ctx.redis.trawlMend(key, ...Object.entries(mended).flat())) === 0) return;
  ctx.log
    .module('queue')
    .warn(
      { event: 'job.unreadable', jobId: cleanText(jobId, 80), fields: Object.keys(mended) },
      'a job was no JSON; it is rejected',
    );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
