import type { Keys } from '../src/queue/names.js';
import type { ScriptedRedis } from '../src/queue/scripts.js';

/** Starts are remembered this long, for the search for runs that nobody owns. */
const rememberedMs = 15 * 60_000;

/** Which scrapes were started lately, by when: the only ones that a run without an owner can come from. */
export class RecentStarts {
  constructor(
    private readonly redis: ScriptedRedis,
    private readonly keys: Keys,
  ) {}

  async add(server: string, scrape: string, at: number): Promise<void> {
    await this.redis.trawlRecent(this.keys.recent(server), at, scrape, rememberedMs);
  }

  async between(server: string, from: number, to: number): Promise<string[]> {
    return this.redis.zrangebyscore(this.keys.recent(server), from, to);
  }
}
