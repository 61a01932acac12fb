import type { Redis } from 'ioredis';
import { isLogLevel, type LogLevel, type LogModule, type LogOverrides, logModules } from '../log-levels.js';
import type { Keys } from './names.js';

export type LogTarget = LogModule | 'all';
const targets: readonly LogTarget[] = ['all', ...logModules];

/**
 * Log levels asked for at run time. A key a module that Redis itself forgets: every process of the fleet sees the same
 * end, whatever its clock says, and nobody has to remember to set a level back.
 */
export class LogLevelOverrides {
  constructor(
    private readonly redis: Redis,
    private readonly keys: Keys,
  ) {}

  async set(target: LogTarget, level: LogLevel, forMs: number): Promise<void> {
    await this.redis.set(this.keys.logLevel(target), level, 'PX', forMs);
  }

  /** Back to the configured level; without a target, all of them. Returns what had another level. */
  async reset(target?: LogTarget): Promise<LogTarget[]> {
    const asked = target === undefined ? targets : [target];
    const gone: LogTarget[] = [];
    for (const one of asked) if ((await this.redis.del(this.keys.logLevel(one))) === 1) gone.push(one);
    return gone;
  }

  /** What is in force now. Whatever stands there that is no level is left out. */
  async read(): Promise<LogOverrides> {
    const values = await this.redis.mget(...targets.map((target) => this.keys.logLevel(target)));
    const found: Partial<Record<LogTarget, LogLevel>> = {};
    for (const [index, target] of targets.entries()) {
      const value = values[index];
      if (typeof value === 'string' && isLogLevel(value)) found[target] = value;
    }
    return found;
  }

  /** The same with the milliseconds each has left. */
  async list(): Promise<{ readonly target: LogTarget; readonly level: LogLevel; readonly leftMs: number }[]> {
    const listed = [];
    for (const [target, level] of Object.entries(await this.read()) as [LogTarget, LogLevel][]) {
      const leftMs = await this.redis.pttl(this.keys.logLevel(target));
      if (leftMs > 0) listed.push({ target, level, leftMs });
    }
    return listed;
  }
}
