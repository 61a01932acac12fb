import { type LogLevels, levelOf, levelsInForce, logModules } from '../src/log-levels.js';
import type { Logger } from '../src/logger.js';
import type { LogLevelOverrides } from '../src/queue/log-overrides.js';

/** Without an answer from Redis for this long the configured levels hold again: nobody could take a level back. */
const forgetAfterMs = 60_000;

/**
 * Brings the levels an operator asked for (`trawl log-level`) into this process. Asked for every few seconds and not
 * announced on a channel: a process that missed the word, or begins later, needs it as well.
 */
export class LogLevelWatch {
  private timer: NodeJS.Timeout | null = null;
  private asking: Promise<void> | null = null;
  private heardAt: number;
  private inForce: LogLevels;

  constructor(
    private readonly overrides: Pick<LogLevelOverrides, 'read'>,
    private readonly log: Logger,
    private readonly configured: LogLevels,
    private readonly everyMs: number,
    private readonly now: () => number,
  ) {
    this.inForce = configured;
    this.heardAt = now();
  }

  start(): void {
    this.timer = setInterval(() => void this.look(), this.everyMs);
    this.timer.unref();
    void this.look();
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
  }

  /** One look at a time: with Redis away each waits for as long as that takes. */
  look(): Promise<void> {
    if (this.now() - this.heardAt > forgetAfterMs) this.apply(this.configured);
    this.asking ??= this.ask().finally(() => {
      this.asking = null;
    });
    return this.asking;
  }

  private async ask(): Promise<void> {
    try {
      const read = await this.overrides.read();
      this.heardAt = this.now();
      this.apply(levelsInForce(this.configured, read));
    } catch {
      // The connection logs that Redis is away.
    }
  }

  private apply(levels: LogLevels): void {
    const before = this.inForce;
    const changed = logModules
      .filter((module) => levelOf(before, module) !== levelOf(levels, module))
      .map((module) => `${module}: ${levelOf(before, module)} → ${levelOf(levels, module)}`);
    if (before.level !== levels.level) changed.unshift(`process: ${before.level} → ${levels.level}`);
    if (changed.length === 0) return;
    this.inForce = levels;
    this.log.setLevels(levels);
    this.log.warn({ event: 'log.levels', changed }, 'log levels changed');
  }
}
