import type { HoldReason } from '../src/mcp/port.js';
import type { ServerState } from '../src/queue/holds.js';
import type { WorkerContext } from './context.js';

const states = ['waiting', 'prioritized', 'delayed', 'active', 'waiting-children', 'failed'] as const;

/** Fleet-wide gauges, from the elected process only (design A8). */
export async function updateFleetGauges(ctx: WorkerContext): Promise<void> {
  const now = ctx.now();
  for (const queue of ctx.queues.all) {
    const counts = await queue.getJobCounts(...states);
    for (const state of states) ctx.metrics.queueJobs(queue.name, state, counts[state] ?? 0);
    ctx.metrics.queueOldestAge(queue.name, await oldestAge(ctx, queue.name, now));
  }
  for (const [name, server] of Object.entries(ctx.config.servers)) {
    const { slots } = ctx.server(name);
    ctx.metrics.runsInFlight(name, await slots.inFlight());
    ctx.metrics.runSlots(name, server.limits.runs);
    const state = await ctx.holds.state(name);
    ctx.metrics.serverHeld(name, serverReasons(state, now));
    ctx.metrics.serverUp(name, state.hold === null || state.hold.reason === 'payment');
    for (const [tool, held] of Object.entries(state.tools))
      ctx.metrics.toolHeld(name, tool, toolReasons(held));
    for (const tool of Object.keys(server.tools)) {
      if (state.tools[tool] === undefined) ctx.metrics.toolHeld(name, tool, new Set());
    }
  }
  await redisMemory(ctx);
}

function serverReasons(state: ServerState, now: number): Set<HoldReason> {
  const reasons = new Set<HoldReason>();
  if (state.hold !== null) reasons.add(state.hold.reason);
  if (state.coolUntil !== null && state.coolUntil > now) reasons.add(state.coolReason ?? 'capacity');
  if (state.pausedSince !== null) reasons.add('paused');
  return reasons;
}

function toolReasons(state: ServerState['tools'][string]): Set<HoldReason> {
  const reasons = new Set<HoldReason>();
  if (state.hold !== null) reasons.add(state.hold.reason);
  if (state.pausedSince !== null) reasons.add('paused');
  return reasons;
}

/** Age of the oldest job that could be worked on now: the head of the queue, or the delayed job longest overdue. */
async function oldestAge(ctx: WorkerContext, queue: string, now: number): Promise<number> {
  const key = ctx.keys.queue(queue);
  const [head, prioritized, overdue] = await Promise.all([
    ctx.redis.lindex(`${key}:wait`, -1),
    ctx.redis.zrange(`${key}:prioritized`, '0', '0'),
    ctx.redis.zrangebyscore(`${key}:delayed`, 0, now * 0x1000, 'WITHSCORES', 'LIMIT', 0, 1),
  ]);
  const due = overdue[1] === undefined ? now : Number(overdue[1]) / 0x1000;
  const first = head ?? prioritized[0];
  const added =
    first === undefined ? now : Number((await ctx.redis.hget(`${key}:${first}`, 'timestamp')) ?? now);
  return Math.max(0, now - Math.min(due, added)) / 1000;
}

async function redisMemory(ctx: WorkerContext): Promise<void> {
  const info = await ctx.redis.info();
  const read = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  ctx.metrics.redis({
    usedBytes: read('used_memory'),
    maxBytes: read('maxmemory'),
    evictedKeys: read('evicted_keys'),
  });
}
