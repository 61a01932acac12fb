import type { HoldReason } from '../mcp/port.js';
import type { Keys } from './names.js';
import type { Queues } from './queues.js';
import type { ScriptedRedis } from './scripts.js';
import { probeEveryMs } from './slots.js';

export interface Hold {
  readonly reason: HoldReason;
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly message: string;
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

/**
 * Holds (ours, lifted by ourselves) and pauses (an operator's) of servers and tools. Held servers are stopped at the gate,
 * before a job is taken; the start jobs of a held tool are set aside once, so that they do not circle in the queue.
 */
export class Holds {
  constructor(
    private readonly redis: ScriptedRedis,
    private readonly keys: Keys,
    private readonly queues: Queues,
  ) {}

  /** True when this call began the hold: the one clear log line is the caller's. */
  async holdServer(server: string, reason: HoldReason, message: string, now: number): Promise<boolean> {
    const key = this.keys.server(server);
    const first = await this.redis.hsetnx(key, 'held', reason);
    if (first === 1) {
      await this.redis.hset(key, 'heldSince', now, 'heldMessage', message, 'probeAt', now + 30_000);
    }
    return first === 1;
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

  /** Answers how long the server is left alone. `sink`: its effective run limit goes down by one for 5 minutes. */
  async coolDown(
    server: string,
    reason: HoldReason,
    retryAfterMs: number | null,
    sink: boolean,
  ): Promise<number> {
    const key = this.keys.server(server);
    return Number(await this.redis.trawlCoolDown(key, reason, retryAfterMs ?? 0, sink ? 1 : 0));
  }

  async holdTool(
    server: string,
    tool: string,
    reason: HoldReason,
    message: string,
    now: number,
  ): Promise<boolean> {
    const hold: Hold = { reason, since: now, message };
    const first = (await this.redis.hsetnx(this.keys.tools(server), tool, JSON.stringify(hold))) === 1;
    if (first) await this.redis.set(this.probeKey(server, tool), '1', 'PX', probeEveryMs);
    return first;
  }

  /** Lifts the hold of a tool and brings its parked start jobs back, in the order they were parked. */
  async releaseTool(server: string, tool: string): Promise<boolean> {
    const removed = await this.redis.hdel(this.keys.tools(server), tool);
    await this.redis.del(this.probeKey(server, tool));
    await this.unpark(server, tool);
    return removed > 0;
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
    if (tool !== null) await this.unpark(server, tool);
    await this.wake(server);
    return removed > 0;
  }

  /**
   * Whether a tool's job may start now. A held tool lets one start through every 5 minutes as a probe; a paused one lets
   * none.
   */
  async toolBlock(server: string, tool: string): Promise<ToolBlock> {
    const [held, paused] = await this.redis.hmget(this.keys.tools(server), tool, pauseField(tool));
    if (paused) {
      return {
        do: 'blocked',
        hold: { reason: 'paused', since: Number(paused), message: 'paused by an operator' },
      };
    }
    if (!held) return { do: 'free' };
    const hold = JSON.parse(held) as Hold;
    const probe = await this.redis.set(this.probeKey(server, tool), '1', 'PX', probeEveryMs, 'NX');
    return { do: probe === 'OK' ? 'probe' : 'blocked', hold };
  }

  /** A held tool whose next probe is due gets one of its parked jobs back; `toolBlock` lets it through. */
  async unparkProbes(server: string): Promise<void> {
    for (const [tool, { hold, pausedSince }] of Object.entries((await this.state(server)).tools)) {
      if (hold === null || pausedSince !== null) continue;
      if ((await this.redis.exists(this.probeKey(server, tool))) === 0) await this.unpark(server, tool, 1);
    }
  }

  /** When to bring a start job of a blocked tool back by itself; it is remembered for the release. */
  async park(server: string, tool: string, jobId: string, now: number): Promise<number> {
    await this.redis.zadd(this.keys.parked(server), now, `${tool}\n${jobId}`);
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

  async parkedCount(server: string): Promise<number> {
    return this.redis.zcard(this.keys.parked(server));
  }

  /** Brings back at most `most` parked start jobs of a tool, oldest first. */
  async unpark(server: string, tool: string, most = Number.POSITIVE_INFINITY): Promise<number> {
    const key = this.keys.parked(server);
    const queue = this.queues.stage('start', server);
    let brought = 0;
    for (const member of await this.redis.zrange(key, '0', '-1')) {
      const [parkedTool, jobId] = member.split('\n') as [string, string];
      if (parkedTool !== tool) continue;
      if (brought >= most) break;
      const job = await queue.getJob(jobId);
      if (job !== undefined) {
        // Still in a worker's hands, on its way to being parked: the sweep comes back for it.
        if (!(await job.isDelayed())) continue;
        await job.promote();
      }
      await this.redis.zrem(key, member);
      brought += 1;
    }
    return brought;
  }

  /** Brings back what was parked just as its tool was released; the sweep calls it. */
  async unparkReleased(server: string): Promise<void> {
    const members = await this.redis.zrange(this.keys.parked(server), '0', '99');
    for (const tool of new Set(members.map((member) => member.slice(0, member.indexOf('\n'))))) {
      const [held, paused] = await this.redis.hmget(this.keys.tools(server), tool, pauseField(tool));
      if (!held && !paused) await this.unpark(server, tool);
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
