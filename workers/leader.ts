import type { ScriptedRedis } from '../src/queue/scripts.js';

export const leaseMs = 10_000;
/** Renewed this often while the leader is at work. */
export const renewEveryMs = leaseMs / 3;

/**
 * One process of the fleet does what only one may do (fleet gauges, probes, the reaper). The lease is short: when the
 * leader dies another takes over within ten seconds.
 */
export class Leader {
  private leading = false;

  constructor(
    private readonly redis: ScriptedRedis,
    private readonly key: string,
    private readonly owner: string,
  ) {}

  /** Takes or renews the lease; call it every few seconds. */
  async campaign(): Promise<boolean> {
    const won = await this.redis.set(this.key, this.owner, 'PX', leaseMs, 'NX');
    if (won === 'OK') this.leading = true;
    else if ((await this.redis.get(this.key)) === this.owner) {
      await this.redis.pexpire(this.key, leaseMs);
      this.leading = true;
    } else this.leading = false;
    return this.leading;
  }

  async resign(): Promise<void> {
    if (!this.leading) return;
    this.leading = false;
    if ((await this.redis.get(this.key)) === this.owner) await this.redis.del(this.key);
  }
}
