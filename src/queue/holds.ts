import type { HoldReason } from '../mcp/port.js';
import type { Keys } from './names.js';
import type { Queues } from './queues.js';
import type { ScriptedRedis } from './scripts.js';
import { type TrialSpans, trialSpans } from './slots.js';

export interface Hold {
  readonly reason: HoldReason;
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly message: string;
  /** What shows that a tool works again: a start that is taken, or runs that end well (the brake). Of tools only. */
  readonly proof?: 'start' | 'runs';
}

export interface ServerState {
  readonly hold: Hold | null;
  readonly pausedSince: number | null;
  readonly coolUntil: number | null;
  readonly coolReason: HoldReason | null;
  /** By canonical tool name. */
  readonly tools: Readonly<
    Record<string, { readonly hold: Hold | null; readonly pausedSince: number | null }>
  >;
}

export type ToolBlock = { readonly do: 'free' } | { readonly do: 'probe' | 'blocked'; readonly hold: Hold };

/** Far enough that BullMQ never brings a parked start job back by itself; releasing the tool does. */
const parkedMs = 365 * 24 * 3600 * 1000;
/** So many parked jobs are brought back in one round trip. */
const unparkAtOnce = 64;

/**
 * Holds (ours, lifted by ourselves) and pauses (an operator's) of servers and tools. Held servers are stopped at the gate,
 * before a job is taken; the start jobs of a held tool are set aside once, so that they do not circle in the queue.
 */
export class Holds {
  constructor(
    private readonly redis: ScriptedRedis,
    private readonly keys: Keys,
    private readonly queues: Queues,
    private readonly spans: TrialSpans = trialSpans,
  ) {}

  /** True when this call began the hold: the one clear log line is the caller's. */
  async holdServer(server: string, reason: HoldReason, message: string, now: number): Promise<boolean> {
    const key = this.keys.server(server);
    const first = (await this.redis.hsetnx(key, 'held', reason)) === 1;
    if (first) {
      const probeAt = now + this.spans.firstTrialMs;
      await this.redis.hset(key, 'heldSince', now, 'heldMessage', message, 'probeAt', probeAt);
    }
    return first;
  }

  /** A held server lets one start through now: the server looks well, and that start shows whether it is. */
  async tryServer(server: string): Promise<void> {
    await this.redis.hdel(this.keys.server(server), 'probeAt');
    await this.wake(server);
  }

  async releaseServer(server: string): Promise<boolean> {
    const removed = await this.redis.hdel(
      this.keys.server(server),
      'held',
      'heldSince',
      'heldMessage',
      'probeAt',
    );
    if (removed > 0) await this.wake(server);
    return removed > 0;
  }

  /**
   * Answers how long the server is left alone, and whether this call began it. `sink`: its effective run limit goes down by
   * one for 5 minutes. `sentMsAgo`: a call that was sent before the last cool-down was over tells of what that was for.
   */
  async coolDown(
    server: string,
    reason: HoldReason,
    retryAfterMs: number | null,
    sink: boolean,
    sentMsAgo: number,
  ): Promise<{ readonly ms: number; readonly began: boolean }> {
    const key = this.keys.server(server);
    const reply = await this.redis.trawlCoolDown(key, reason, retryAfterMs ?? 0, sink ? 1 : 0, sentMsAgo);
    const [ms, began] = reply as [number, number];
    return { ms, began: began === 1 };
  }

  async holdTool(
    server: string,
    tool: string,
    reason: HoldReason,
    message: string,
    now: number,
    proof: 'start' | 'runs' = 'start',
  ): Promise<boolean> {
    const hold: Hold = { reason, since: now, message, proof };
    const first = (await this.redis.hsetnx(this.keys.tools(server), tool, JSON.stringify(hold))) === 1;
    if (first) await this.redis.set(this.probeKey(server, tool), '1', 'PX', this.spans.trialEveryMs);
    return first;
  }

  /** Lifts the hold of a tool and brings its parked start jobs back, in the order they were parked. */
  async releaseTool(server: string, tool: string): Promise<boolean> {
    const removed = await this.redis.hdel(this.keys.tools(server), tool);
    await this.redis.del(this.probeKey(server, tool));
    await this.unparkReleased(server, tool);
    return removed > 0;
  }

  /** A held tool lets one start through now; one of its parked jobs comes back for it. */
  async tryTool(server: string, tool: string): Promise<void> {
    await this.redis.del(this.probeKey(server, tool));
    await this.unpark(server, tool, 1);
  }

  /** Nothing was started with the tool's probe: the next job may be it. */
  async spareProbe(server: string, tool: string): Promise<void> {
    await this.redis.del(this.probeKey(server, tool));
  }

  async pause(server: string, tool: string | null, now: number): Promise<boolean> {
    const set =
      tool === null
        ? await this.redis.hsetnx(this.keys.server(server), 'paused', now)
        : await this.redis.hsetnx(this.keys.tools(server), pauseField(tool), now);
    return set === 1;
  }

  async resume(server: string, tool: string | null): Promise<boolean> {
    const removed =
      tool === null
        ? await this.redis.hdel(this.keys.server(server), 'paused')
        : await this.redis.hdel(this.keys.tools(server), pauseField(tool));
    if (tool !== null) await this.unparkReleased(server, tool);
    await this.wake(server);
    return removed > 0;
  }

  /**
   * Whether a tool's job may start now, and the refusal that its scrape waits with. A held tool lets one start through every
   * 5 minutes as a probe; a paused one lets none.
   */
  async against(
    server: string,
    tool: string,
    scrape: string,
  ): Promise<{ readonly block: ToolBlock; readonly refusal: string | null }> {
    const [held, paused, refusal] = (await this.redis.trawlAgainst(
      this.keys.tools(server),
      this.keys.refusals(server, tool),
      tool,
      pauseField(tool),
      scrape,
    )) as (string | null)[];
    return { block: await this.toolBlock(server, tool, held, paused), refusal: refusal ?? null };
  }

  private async toolBlock(
    server: string,
    tool: string,
    held: string | null | undefined,
    paused: string | null | undefined,
  ): Promise<ToolBlock> {
    if (paused) {
      return {
        do: 'blocked',
        hold: { reason: 'paused', since: Number(paused), message: 'paused by an operator' },
      };
    }
    if (!held) return { do: 'free' };
    const hold = JSON.parse(held) as Hold;
    const probe = await this.redis.set(this.probeKey(server, tool), '1', 'PX', this.spans.trialEveryMs, 'NX');
    return { do: probe === 'OK' ? 'probe' : 'blocked', hold };
  }

  /** A held tool whose next probe is due gets one of its parked jobs back; `against` lets it through. */
  async unparkProbes(server: string): Promise<void> {
    for (const [tool, { hold, pausedSince }] of Object.entries((await this.state(server)).tools)) {
      if (hold === null || pausedSince !== null) continue;
      if ((await this.redis.exists(this.probeKey(server, tool))) === 0) await this.unpark(server, tool, 1);
    }
  }

  /** When to bring a start job of a blocked tool back by itself; it is remembered for the release. */
  async park(server: string, tool: string, jobId: string, now: number): Promise<number> {
    await this.redis
      .multi()
      .sadd(this.keys.parked(server), tool)
      .zadd(this.keys.parkedOf(server, tool), now, jobId)
      .exec();
    return now + parkedMs;
  }

  async state(server: string): Promise<ServerState> {
    const [own, tools] = await Promise.all([
      this.redis.hgetall(this.keys.server(server)),
      this.redis.hgetall(this.keys.tools(server)),
    ]);
    const states: Record<string, { hold: Hold | null; pausedSince: number | null }> = {};
    for (const [field, value] of Object.entries(tools)) {
      const tool = field.startsWith('paused:') ? field.slice('paused:'.length) : field;
      const entry = states[tool] ?? { hold: null, pausedSince: null };
      states[tool] = entry;
      if (field === tool) entry.hold = JSON.parse(value) as Hold;
      else entry.pausedSince = Number(value);
    }
    return {
      hold: own.held
        ? {
            reason: own.held as HoldReason,
            since: Number(own.heldSince ?? 0),
            message: own.heldMessage ?? '',
          }
        : null,
      pausedSince: own.paused ? Number(own.paused) : null,
      coolUntil: own.coolUntil ? Number(own.coolUntil) : null,
      coolReason: (own.coolReason as HoldReason | undefined) ?? null,
      tools: states,
    };
  }

  /** Start jobs that are set aside, of one tool or of all. */
  async parkedCount(server: string, tool?: string): Promise<number> {
    if (tool !== undefined) return this.redis.zcard(this.keys.parkedOf(server, tool));
    const tools = await this.redis.smembers(this.keys.parked(server));
    const counts = await Promise.all(tools.map((name) => this.parkedCount(server, name)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Brings back what was parked just as its tool was released; the sweep calls it for all tools. */
  async unparkReleased(server: string, only?: string): Promise<void> {
    const parked = this.keys.parked(server);
    for (const tool of only === undefined ? await this.redis.smembers(parked) : [only]) {
      const [held, paused] = await this.redis.hmget(this.keys.tools(server), tool, pauseField(tool));
      if (held || paused) continue;
      await this.unpark(server, tool, Number.POSITIVE_INFINITY);
      // Out first: a job parked in between puts its tool in again, or is seen by the count.
      await this.redis.srem(parked, tool);
      if ((await this.parkedCount(server, tool)) > 0) await this.redis.sadd(parked, tool);
    }
  }

  /**
   * Brings back at most `most` parked start jobs of a tool, oldest first. One that is still in a worker's hands, on its
   * way to being parked, is left: the sweep comes back for it.
   */
  private async unpark(server: string, tool: string, most: number): Promise<void> {
    const key = this.keys.parkedOf(server, tool);
    const queue = this.queues.stage('start', server);
    let left = most;
    for (let skipped = 0; left > 0; ) {
      const last = skipped + Math.min(unparkAtOnce, left) - 1;
      const jobIds = await this.redis.zrange(key, String(skipped), String(last));
      if (jobIds.length === 0) return;
      const jobs = await Promise.all(jobIds.map((jobId) => queue.getJob(jobId)));
      const delayed = await Promise.all(jobs.map((job) => job?.isDelayed() ?? true));
      const gone = jobIds.filter((_, index) => delayed[index]);
      // Another process may bring the same jobs back at the same time.
      await Promise.allSettled(jobs.map((job, index) => (delayed[index] ? job?.promote() : undefined)));
      if (gone.length > 0) await this.redis.zrem(key, ...gone);
      left -= gone.length;
      skipped += jobIds.length - gone.length;
    }
  }

  private probeKey(server: string, tool: string): string {
    return `${this.keys.tools(server)}:probe:${tool}`;
  }

  private async wake(server: string): Promise<void> {
    await this.redis.publish(this.keys.wakeChannel, server);
  }
}

function pauseField(tool: string): string {
  return `paused:${tool}`;
}
