import { randomBytes } from 'node:crypto';
import type { Config } from '../src/config.js';
import type { Logger } from '../src/logger.js';
import type { Hold, Holds } from '../src/queue/holds.js';
import type { Keys } from '../src/queue/names.js';
import type { ScriptedRedis } from '../src/queue/scripts.js';
import type { Outcome } from '../src/scrape/types.js';

/** Good settlements in a row that let a braked tool go again (design B5). */
const goodToRelease = 3;
const lifetimeMs = 7 * 24 * 3_600_000;

/** What an outcome says about its tool: good, bad, or nothing. */
export function verdictOf(outcome: Outcome): 'good' | 'bad' | null {
  switch (outcome) {
    case 'empty':
    case 'failed':
    case 'rejected':
      return 'bad';
    case 'succeeded':
    case 'low_count':
    case 'capped':
      return 'good';
    case 'deadline_exceeded':
    case 'cancelled':
    case 'expired':
    case 'start_unknown':
    case 'lost':
    case 'errored':
      return null;
    default:
      return outcome satisfies never;
  }
}

/**
 * The brake of a tool: over its last `window` settled runs, `badRatio` of them empty, failed or rejected, its starts are
 * held. One probe goes through every 5 minutes; three good ones in a row release it.
 */
export class Brake {
  constructor(
    private readonly redis: ScriptedRedis,
    private readonly keys: Keys,
    private readonly holds: Holds,
    private readonly config: Pick<Config, 'brake' | 'servers'>,
    private readonly log: Logger,
  ) {}

  /** @param startedAt of the run; null when there was none */
  async record(
    server: string,
    tool: string,
    outcome: Outcome,
    startedAt: number | null,
    now: number,
  ): Promise<void> {
    const verdict = verdictOf(outcome);
    if (verdict === null || !this.isOurs(server, tool)) return;
    const key = this.keys.brakeWindow(server, tool);
    const [hold, verdicts] = (await this.redis.trawlBrake(
      key,
      this.keys.tools(server),
      tool,
      verdict === 'bad' ? '1' : '0',
      this.config.brake.window,
      lifetimeMs,
      startedAt ?? now,
      randomBytes(6).toString('base64url'),
    )) as [string, string | undefined];
    // Runs begun before the hold say nothing of what its trials are to show.
    if (verdicts === undefined) return;
    const window = [...verdicts];
    if (hold !== '') {
      const { proof } = JSON.parse(hold) as Hold;
      return proof === 'runs' ? this.reconsider(server, tool, key, window) : undefined;
    }
    if (window.length < this.config.brake.window) return;
    const bad = window.filter((entry) => entry === '1').length;
    if (bad / window.length < this.config.brake.badRatio) return;
    await this.pull(server, tool, bad, window.length, now, key);
  }

  private isOurs(server: string, tool: string): boolean {
    const { servers } = this.config;
    return Object.hasOwn(servers, server) && Object.hasOwn(servers[server]?.tools ?? {}, tool);
  }

  private async pull(
    server: string,
    tool: string,
    bad: number,
    of: number,
    now: number,
    key: string,
  ): Promise<void> {
    const message = `${bad} of its last ${of} runs were empty, failed or rejected`;
    const entry = { event: 'tool.brake', server, tool, reason: 'brake', message };
    if (this.config.brake.action === 'warn') {
      await this.redis.del(key);
      this.log.warn(entry, 'the brake would hold this tool; brake.action is warn');
      return;
    }
    if (await this.holds.holdTool(server, tool, 'brake', message, now, 'runs')) {
      // Only what the trials bring decides from here on.
      await this.redis.del(key);
      this.log.error(
        entry,
        'tool held: its runs turned bad; one probe every 5 minutes decides when it goes on',
      );
    }
  }

  private async reconsider(server: string, tool: string, key: string, window: string[]): Promise<void> {
    const good = window.slice(0, goodToRelease);
    if (good.length < goodToRelease || good.some((entry) => entry === '1')) return;
    await this.redis.del(key);
    if (await this.holds.releaseTool(server, tool)) {
      this.log.info({ event: 'tool.released', server, tool }, 'tool released: its last three runs were good');
    }
  }
}
