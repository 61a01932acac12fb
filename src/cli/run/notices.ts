import type { LogLevels } from '../../log-levels.js';
import { createLogger, type Logger } from '../../logger.js';
import { cleanText } from '../../scrape/clean-text.js';
import { clock } from '../format.js';
import { say } from '../output.js';

/** The same notice is shown again after this long at the earliest: a cool-down comes every few seconds. */
const repeatMs = 60_000;
/** Told by the summary, by cause, for all scrapes together; the last ones by the progress display. */
const toldElsewhere = new Set([
  'scrape.settled',
  'redis.error',
  'worker.error',
  'server.cool_down',
  'mcp.call',
]);

/**
 * The log of a `run`, for somebody who watches: what holds the work up, as lines between the progress. With log.level or
 * a level of log.modules at debug or trace everything is written as it comes.
 */
export class Notices {
  /** Where lines go; the progress display takes over once there is one. */
  write: (line: string) => void = say;
  private readonly shown = new Map<string, number>();

  logger({ level, modules }: LogLevels): Logger {
    const plain = [level, ...Object.values(modules)].some((one) => one === 'debug' || one === 'trace');
    if (plain || level === 'silent') return createLogger({ level, modules });
    return createLogger({
      level: level === 'info' ? 'warn' : level,
      modules,
      pretty: false,
      destination: { write: (line: string) => this.take(line) },
    });
  }

  private take(line: string): void {
    const entry = JSON.parse(line) as Record<string, unknown>;
    if (typeof entry.event === 'string' && toldElsewhere.has(entry.event)) return;
    const { server, tool, reason, message, hint, err, scrapeId } = entry;
    const about = [server, tool, scrapeId, reason].filter((part) => typeof part === 'string').join(' ');
    const cause = (err as { message?: unknown } | undefined)?.message;
    const details = [message, cause, hint].filter((part) => typeof part === 'string').join(' ');
    const place = about === '' ? '' : ` (${about})`;
    const text = cleanText(`${entry.msg}${place}${details === '' ? '' : `: ${details}`}`, 1000);
    const now = Date.now();
    if (now - (this.shown.get(text) ?? 0) < repeatMs) return;
    if (this.shown.size > 1_000) this.shown.clear();
    this.shown.set(text, now);
    this.write(`${clock(now)} ${text}`);
  }
}
