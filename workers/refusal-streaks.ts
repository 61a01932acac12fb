import type { Keys } from '../src/queue/names.js';
import type { ScriptedRedis } from '../src/queue/scripts.js';
import type { Decision } from '../src/run/attempt.js';
import type { WorkerContext } from './context.js';
import { holdTool } from './refusals.js';
import { complete, type Next, type Step } from './stage.js';

/** So many different scrapes refused in a row for a reason nobody knows: it is not the scrapes (design B5). */
const streakLength = 5;
const lifetimeMs = 3_600_000;

/**
 * Start refusals we do not recognise. One alone rejects its scrape, but only after a wait: when five different scrapes of a
 * tool meet them in a row, the tool is held and those five go back. No refused start is made again in between. A start that works ends the streak (`handOn`);
 * who still waits with a refusal is rejected when its wait is over.
 */
export class RefusalStreaks {
  constructor(
    private readonly redis: ScriptedRedis,
    private readonly keys: Keys,
  ) {}

  /** A scrape has waited with its refusal long enough, and is rejected for it. */
  async forget(server: string, tool: string, scrape: string): Promise<void> {
    await this.redis.hdel(this.keys.refusals(server, tool), scrape);
  }

  async unrecognised(ctx: WorkerContext, step: Step, tool: string, decision: Decision): Promise<Next> {
    const { attempt, server } = step;
    const patch = { intentAt: null, asked: null, startedAt: null, deadlineAt: null };
    const from = { lowest: 'queued', highest: 'starting' } as const;
    if ((await ctx.store.advance(attempt, step.lock, from, null, patch)) === 'stale') return complete;
    const pending = this.keys.refusals(server, tool);
    const streak = this.keys.refusalStreak(server, tool);
    await this.redis
      .multi()
      .hset(pending, attempt.scrape, decision.message)
      .pexpire(pending, lifetimeMs)
      .sadd(streak, attempt.scrape)
      .pexpire(streak, lifetimeMs)
      .exec();
    const refused = await this.redis.smembers(streak);
    if (refused.length >= streakLength) {
      // Held first: who comes back in between finds the hold before it finds its refusal gone.
      const message = `Five scrapes in a row were refused for an unknown reason: ${decision.message}`;
      const next = await holdTool(ctx, server, step, tool, 'brake', message);
      await this.redis
        .multi()
        .hdel(pending, ...refused)
        .del(streak)
        .exec();
      return next;
    }
    // Also a trial of a held tool: what it meets is the tool's fault, and its scrape is not rejected for it.
    const { tools } = await ctx.holds.state(server);
    if (tools[tool]?.hold) {
      await this.redis.multi().hdel(pending, attempt.scrape).srem(streak, attempt.scrape).exec();
      return { do: 'snooze', until: await ctx.holds.park(server, tool, step.job.id as string, ctx.now()) };
    }
    return { do: 'snooze', until: ctx.now() + ctx.timing.refusalPatienceMs };
  }
}
