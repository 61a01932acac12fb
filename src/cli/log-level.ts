import { type Command, Option } from 'commander';
import { TrawlError } from '../errors.js';
import {
  isLogLevel,
  isLogModule,
  type LogLevel,
  type LogLevels,
  levelOf,
  logLevels,
  logModules,
} from '../log-levels.js';
import { LogLevelOverrides, type LogTarget } from '../queue/log-overrides.js';
import { cleanText } from '../scrape/clean-text.js';
import { nearest } from '../scrape/nearest.js';
import { withFleet } from './fleet.js';
import { span } from './format.js';
import {
  type CommonOptions,
  durationArgument,
  quietLogger,
  readConfig,
  withExamples,
  withJsonOption,
} from './options.js';
import { print, printJson } from './output.js';

interface LogLevelOptions extends CommonOptions {
  readonly for: number;
}

type Wish =
  | { readonly do: 'show' }
  | { readonly do: 'set'; readonly target: LogTarget; readonly level: LogLevel }
  | { readonly do: 'reset'; readonly target?: LogTarget };

const hour = 3_600_000;
const longestMs = 24 * hour;

/** Adds `trawl log-level`: what running workers log, changed for a while. */
export function registerLogLevel(program: Command): void {
  const command = program
    .command('log-level')
    .description('show or change, for a while, what all running workers log; none is restarted')
    .argument('[module]', `${logModules.join(', ')}; absent: everything`)
    .argument('[level]', `${logLevels.join(', ')}; or reset, back to what is configured`)
    .addOption(
      new Option('--for <duration>', 'how long, at most 24h; then the configured level holds again')
        .argParser(durationArgument)
        .default(15 * 60_000, '15m'),
    )
    .action(
      async (module: string | undefined, level: string | undefined, _o: LogLevelOptions, self: Command) => {
        await logLevel(readWish(module, level), self.optsWithGlobals<LogLevelOptions>());
      },
    );
  withJsonOption(command);
  withExamples(
    command,
    'trawl log-level                       what is in force, and until when',
    'trawl log-level mcp debug             every call to the servers, for 15 minutes',
    'trawl log-level debug --for 5m        everything',
    'trawl log-level mcp reset             back at once; trawl log-level reset: all of it',
    '',
    'Workers look every 2 seconds. For good: log.level and log.modules in trawl.yaml.',
  );
}

async function logLevel(wish: Wish, options: LogLevelOptions): Promise<void> {
  const { config, log } = readConfig(options, quietLogger);
  if (options.for > longestMs) {
    throw new TrawlError('usage_invalid', `--for: expected at most 24h, found ${span(options.for)}.`, {
      hint: 'For good: log.level and log.modules in trawl.yaml.',
    });
  }
  await withFleet(config, log, async ({ redis, keys }) => {
    const overrides = new LogLevelOverrides(redis, keys);
    if (wish.do === 'set') await overrides.set(wish.target, wish.level, options.for);
    if (wish.do === 'reset') await overrides.reset(wish.target);
    show(config.log, await overrides.list(), options.json === true);
  });
}

function show(
  configured: LogLevels,
  asked: Awaited<ReturnType<LogLevelOverrides['list']>>,
  json: boolean,
): void {
  const rows = logModules.map((module) => {
    const own = asked.find(({ target }) => target === module) ?? asked.find(({ target }) => target === 'all');
    const normal = levelOf(configured, module);
    return { module, level: own?.level ?? normal, configured: normal, leftMs: own?.leftMs ?? null };
  });
  if (json) {
    printJson(rows);
    return;
  }
  for (const { module, level, configured: normal, leftMs } of rows) {
    const until = leftMs === null ? '' : `  for ${span(leftMs)}, then ${normal}`;
    print(`${module.padEnd(8)}${level.padEnd(6)}${until}`.trimEnd());
  }
}

/** `[module] [level|reset]`; a level alone is for everything. @throws TrawlError `usage_invalid` with the nearest name */
function readWish(first: string | undefined, second: string | undefined): Wish {
  if (first === undefined) return { do: 'show' };
  if (second === undefined) {
    if (first === 'reset') return { do: 'reset' };
    if (isLogLevel(first)) return { do: 'set', target: 'all', level: first };
    if (isLogModule(first)) {
      throw new TrawlError('usage_invalid', `Which level should ${first} have?`, {
        hint: `Such as: trawl log-level ${first} debug. Levels: ${logLevels.join(', ')}, reset.`,
      });
    }
    throw unknown('level or module', first, [...logLevels, 'reset', ...logModules]);
  }
  if (first !== 'all' && !isLogModule(first)) throw unknown('module', first, ['all', ...logModules]);
  if (second === 'reset') return { do: 'reset', target: first };
  if (!isLogLevel(second)) throw unknown('level', second, [...logLevels, 'reset']);
  return { do: 'set', target: first, level: second };
}

function unknown(what: string, found: string, known: readonly string[]): TrawlError {
  return new TrawlError('usage_invalid', `There is no ${what} "${cleanText(found, 60)}".`, {
    hint: `Did you mean ${nearest(found, known)}? Known: ${known.join(', ')}.`,
  });
}
