import type { ServerConfig } from '../src/config.js';
import { decide } from '../src/run/outcome.js';
import type { Scrape } from '../src/scrape/types.js';
import type { WorkerContext } from './context.js';
import { type Next, type Step, settle } from './stage.js';

/** A start whose answer was lost: nothing is started again, and the scrape says so. */
export async function reconcile(
  ctx: WorkerContext,
  server: ServerConfig,
  step: Step,
  _scrape: Scrape | null,
): Promise<Next> {
  ctx.metrics.ambiguousStart(server.name, 'unknown');
  const message =
    'The answer to the start call was lost, so a run may exist; nothing was started again. Look at the runs on the server before you retry.';
  return settle(ctx, step, decide('start_unknown', message, step.now));
}
