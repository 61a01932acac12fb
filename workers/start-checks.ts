import { usualMemoryMb } from '../src/config/warnings.js';
import type { ServerConfig } from '../src/config.js';
import { checkInput } from '../src/mcp/input-check.js';
import type { ScrapeServer } from '../src/mcp/port.js';
import type { RunSpec } from '../src/run/attempt.js';
import { decide } from '../src/run/outcome.js';
import { afterStart } from '../src/run/start.js';
import type { Scrape } from '../src/scrape/types.js';
import type { WorkerContext } from './context.js';
import { refused } from './refusals.js';
import { type Next, type Step, settle } from './stage.js';

/** The server's own list of tools and the Actor's input schema, before any money is spent. */
export async function checkAgainstServer(
  ctx: WorkerContext,
  port: ScrapeServer,
  scrape: Scrape,
  step: Step,
): Promise<Next | null> {
  const described = await port.describe();
  if (!described.ok) {
    const after = afterStart(described, ctx.now());
    const hold = after.do === 'put_back' ? after : null;
    return await refused(ctx, scrape.server, step, scrape.tool, {
      hold: hold?.hold ?? 'server',
      reason: hold?.reason ?? 'unreachable',
      retryAfterMs: described.failure.retryAfterMs,
      message: described.failure.message,
    });
  }
  const tool = described.value.tools.get(scrape.tool);
  if (tool === undefined) {
    return await refused(ctx, scrape.server, step, scrape.tool, {
      hold: 'tool',
      reason: 'tools_missing',
      retryAfterMs: null,
      message: `The server does not show the tool ${scrape.tool}; check its name and that the token may use it.`,
    });
  }
  if (described.value.via === 'direct' && Object.keys(scrape.options).length > 0) {
    const message = `The server offers no call-actor, so run options (${Object.keys(scrape.options).join(', ')}) would be ignored; remove them or expose call-actor.`;
    return await settle(ctx, step, decide('rejected', message, step.now));
  }
  const problems = tool.inputSchema === null ? [] : checkInput(tool.inputSchema, scrape.input);
  if (problems.length === 0) return null;
  const message = `The input does not fit the tool's schema: ${problems.slice(0, 5).join('; ')}. Nothing was spent.`;
  return await settle(ctx, step, decide('rejected', message, step.now));
}

/** MB that a run counts against `limits.memoryMb`. */
export function memoryOf(server: ServerConfig, scrape: Scrape): number {
  return scrape.options.memory ?? Math.min(usualMemoryMb, server.limits.memoryMb ?? usualMemoryMb);
}

/** What of a scrape its attempt needs once its run is under way. */
export function runSpec(scrape: Scrape): RunSpec {
  return {
    batch: scrape.batch,
    id: scrape.id,
    server: scrape.server,
    tool: scrape.tool,
    deadlineMs: scrape.deadlineMs,
    minItems: scrape.minItems,
    onEmpty: scrape.onEmpty,
    retries: scrape.retries,
    fields: scrape.fields,
    records: scrape.records,
    maxItems: scrape.options.maxItems ?? null,
    maxTotalChargeUsd: scrape.options.maxTotalChargeUsd ?? null,
  };
}
