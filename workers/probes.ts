import type { HoldReason } from '../src/mcp/port.js';
import type { WorkerContext } from './context.js';

/** Holds that a look at the server can lift. A payment hold is only lifted by a start, which the gate lets through. */
const seenByLooking = new Set(['auth', 'tools_missing', 'unreachable']);

/**
 * Looks whether a held server and its held tools work again (design B5: one elected process probes). A server that looks well
 * lets one start through, and that one lifts the hold: a look sees too little to send a whole backlog after it.
 */
export async function probeServer(ctx: WorkerContext, name: string): Promise<void> {
  const { hold, tools } = await ctx.holds.state(name);
  if (hold !== null && seenByLooking.has(hold.reason) && (await works(ctx, name, hold.reason))) {
    if (await startsWait(ctx, name)) await ctx.holds.tryServer(name);
    else await lift(ctx, name);
  }
  for (const [tool, state] of Object.entries(tools)) {
    if (state.hold?.reason !== 'tools_missing' || state.pausedSince !== null) continue;
    const described = await ctx.server(name).port.describe({ fresh: true, signal: ctx.stopping });
    if (!described.ok || !described.value.tools.has(tool)) continue;
    if ((await ctx.holds.parkedCount(name, tool)) > 0) await ctx.holds.tryTool(name, tool);
    else await liftTool(ctx, name, tool);
  }
}

async function startsWait(ctx: WorkerContext, server: string): Promise<boolean> {
  const counts = await ctx.queues.stage('start', server).getJobCounts('waiting', 'prioritized', 'active');
  return Object.values(counts).some((count) => count > 0);
}

/**
 * A list of tools says nothing of the token: the server answers it from memory. The list of runs is asked of the API; a
 * token that may start runs and not list them is found out by the start that the gate lets through.
 */
async function works(ctx: WorkerContext, server: string, reason: HoldReason): Promise<boolean> {
  const { port } = ctx.server(server);
  const described = await port.describe({ fresh: true, signal: ctx.stopping });
  if (!described.ok) return false;
  if (reason !== 'auth' || !described.value.canList) return true;
  return (await port.listRuns({ offset: 0, limit: 1 }, ctx.stopping)).ok;
}

/** Ends a hold and says so, once. */
export async function lift(ctx: WorkerContext, server: string): Promise<void> {
  if (await ctx.holds.releaseServer(server)) {
    ctx.log.module('fleet').info({ event: 'server.released', server }, 'server works again; starts go on');
  }
}

/** A start that was made after the server was held has made a run: the server takes starts, though that answer was lost. */
export async function liftIfTaken(
  ctx: WorkerContext,
  server: string,
  intentAt: number | null,
): Promise<void> {
  const { hold } = await ctx.holds.state(server);
  if (hold !== null && intentAt !== null && intentAt > hold.since) await lift(ctx, server);
}

/** The same for a tool. */
export async function liftTool(ctx: WorkerContext, server: string, tool: string): Promise<void> {
  if (await ctx.holds.releaseTool(server, tool)) {
    ctx.log
      .module('fleet')
      .info({ event: 'tool.released', server, tool }, 'tool works again; its jobs go on');
  }
}
