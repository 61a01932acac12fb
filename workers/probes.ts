import type { WorkerContext } from './context.js';

/** Holds that a look at the server can lift. A payment hold is only lifted by a start, which the gate lets through. */
const seenByLooking = new Set(['auth', 'tools_missing', 'unreachable']);

/** Looks whether held servers work again (design B5: one elected process probes). */
export async function probeServers(ctx: WorkerContext): Promise<void> {
  for (const name of Object.keys(ctx.config.servers)) {
    const { hold, tools } = await ctx.holds.state(name);
    if (hold !== null && seenByLooking.has(hold.reason)) {
      const described = await ctx.server(name).port.describe({ fresh: true });
      if (described.ok) await lift(ctx, name);
    }
    for (const [tool, state] of Object.entries(tools)) {
      if (state.hold?.reason !== 'tools_missing') continue;
      const described = await ctx.server(name).port.describe({ fresh: true });
      if (described.ok && described.value.tools.has(tool)) {
        await ctx.holds.releaseTool(name, tool);
        ctx.log.info({ event: 'tool.released', server: name, tool }, 'tool works again; its jobs go on');
      }
    }
  }
}

/** Ends a hold and says so, once. */
export async function lift(ctx: WorkerContext, server: string): Promise<void> {
  if (await ctx.holds.releaseServer(server)) {
    ctx.log.info({ event: 'server.released', server }, 'server works again; starts go on');
  }
}
