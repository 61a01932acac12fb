import { isatty } from 'node:tty';
import pino from 'pino';
import { prettyFactory } from 'pino-pretty';
import { createScrubber, type Scrubber, secretMark } from './config/scrub.js';
import { type LogLevels, type LogModule, levelOf } from './log-levels.js';
import { cleanText, escapeInvisible } from './scrape/clean-text.js';

/** A pino logger; children share the secrets of the one they come from. */
export type Logger = pino.Logger & {
  /** Makes sure that a value never appears in what this logger and its children write from now on. */
  registerSecret(value: string): void;
  /** The logger of a part of Trawl, the same one each time: its lines name it, and its level is its own. */
  module(name: LogModule): Logger;
  /** Levels from now on, of the logger at the root and of its modules. */
  setLevels(levels: LogLevels): void;
};

export interface LoggerOptions {
  /** Can be changed later through `setLevels`. */
  readonly level: string;
  /** Of modules whose level differs. */
  readonly modules?: LogLevels['modules'] | undefined;
  /** For people instead of programs. Absent: when stderr is a terminal and no `destination` is given. */
  readonly pretty?: boolean | undefined;
  /** Takes one line an event, line break included. Absent: stderr. */
  readonly destination?: { write(line: string): unknown } | undefined;
}

/** Keys that hold secrets, wherever they stand in the first two levels of a log entry. */
const secretKeys = ['token', 'password', 'authorization', 'Authorization', 'secret'];
const maxLineLength = 32_768;
const maxTextLength = 2000;
const stderr = 2;

/**
 * Writes one line of JSON an event, or on a terminal one for people. Secrets are taken out twice: by key, and by
 * value once they are registered. Terminal escapes and reordering characters of foreign text come out escaped in
 * JSON and not at all in the form for people; an overlong event is shortened.
 */
export function createLogger(options: LoggerOptions): Logger {
  const scrubber = createScrubber();
  const pretty = options.pretty ?? (options.destination === undefined && isatty(stderr));
  const destination = options.destination ?? pino.destination({ fd: stderr, sync: true });
  const write = pretty ? prettyWriter(destination, scrubber) : jsonWriter(destination, scrubber);
  const logger = pino(
    {
      level: options.level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: [...secretKeys, ...secretKeys.map((key) => `*.${key}`)], censor: secretMark },
    },
    { write },
  );
  const modules = new Map<LogModule, Logger>();
  const levels: { level: string; modules: LogLevels['modules'] } = {
    level: options.level,
    modules: options.modules ?? {},
  };
  const whole: Logger = Object.assign(logger, {
    registerSecret: scrubber.register,
    module(name: LogModule): Logger {
      const known = modules.get(name);
      if (known !== undefined) return known;
      const made = whole.child({ module: name }, { level: levels.modules[name] ?? levels.level }) as Logger;
      modules.set(name, made);
      return made;
    },
    setLevels(next: LogLevels): void {
      Object.assign(levels, next);
      whole.level = next.level;
      for (const [name, module] of modules) module.level = levelOf(next, name);
    },
  });
  return whole;
}

/** A child whose every entry names the scrape, the run, the server it is about; texts are cleaned and bounded. */
export function childLogger(
  logger: Logger,
  about: {
    readonly scrapeId?: string | undefined;
    readonly batch?: string | undefined;
    readonly runId?: string | undefined;
    readonly server?: string | undefined;
  },
): Logger {
  const bindings: Record<string, string> = {};
  for (const [key, value] of Object.entries(about)) {
    if (value !== undefined) bindings[key] = cleanText(value, 128);
  }
  // A child has the logger as its prototype, and with it `registerSecret`.
  return logger.child(bindings) as Logger;
}

function jsonWriter(destination: NonNullable<LoggerOptions['destination']>, scrubber: Scrubber) {
  return (line: string) => {
    const short = line.length > maxLineLength ? shorten(line) : line;
    destination.write(escapeInvisible(scrubber.scrub(short)));
  };
}

function prettyWriter(destination: NonNullable<LoggerOptions['destination']>, scrubber: Scrubber) {
  const colorize = isatty(stderr);
  const print = prettyFactory({
    colorize,
    ignore: 'pid,hostname',
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss',
  });
  return (line: string) => {
    const entry = cleanTexts(JSON.parse(scrubber.scrub(line)) as unknown, 0);
    const printed = print(entry as object);
    if (printed !== undefined) destination.write(printed);
  };
}

function shorten(line: string): string {
  const entry = cleanTexts(JSON.parse(line) as unknown, 0);
  const short = `${JSON.stringify({ ...(entry as object), shortened: true })}\n`;
  if (short.length <= maxLineLength) return short;
  const { level, time, msg } = entry as Record<string, unknown>;
  return `${JSON.stringify({ level, time, msg, shortened: true })}\n`;
}

/** The value with every text in it fit to be printed; stacks keep their lines. */
function cleanTexts(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cleanText(value, maxTextLength);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > 8) return '…';
  if (Array.isArray(value)) return value.slice(0, 100).map((member) => cleanTexts(member, depth + 1));
  const cleaned: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    const safe = cleanText(key, 100);
    if (safe === '__proto__') continue;
    cleaned[safe] =
      safe === 'stack' && typeof member === 'string'
        ? member
            .slice(0, 8000)
            .split('\n')
            .map((row) => cleanText(row, 300))
            .join('\n')
        : cleanTexts(member, depth + 1);
  }
  return cleaned;
}
