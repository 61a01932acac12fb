import type { ScriptedRedis } from '../src/queue/scripts.js';

/**
 * One process of the fleet does what only one may do (fleet gauges, probes, the reaper). The lease is short: when the
 * leader dies another takes over within ten seconds. It is renewed three times in its life.
 */
export class Leader {
  private leading = false;

  constructor(
    private readonly redis: ScriptedRedis,
    private readonly key: string,
    private readonly owner: string,
    private readonly leaseMs: number,
  ) {}

  /** Takes or renews the lease; call it every few seconds. */
  async campaign(): Promise<boolean> {
    const won = await this.redis.set(this.key, this.owner, 'PX', this.leaseMs, 'NX');
    if (won === 'OK') this.leading = true;
    else if ((await this.redis.get(this.key)) === this.owner) {
      await this.redis.pexpire(this.key, this.leaseMs);
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
