import { type Command, InvalidArgumentError } from 'commander';
import { type Config, configSecrets, loadConfig } from '../config.js';
import { TrawlError } from '../errors.js';
import type { LogLevels } from '../log-levels.js';
import { createLogger, type Logger } from '../logger.js';
import { cleanText } from '../scrape/clean-text.js';
import { durationSyntax, parseDuration } from '../scrape/duration.js';
import { batchSyntax, isBatch } from '../scrape/identity.js';
import { nearest } from '../scrape/nearest.js';
import { resolveTool } from '../scrape/tool-name.js';

export interface CommonOptions {
  readonly config?: string;
  readonly json?: boolean;
}

/** A command that needs the configuration. */
export function withConfigOption(command: Command): Command {
  return command.option('--config <file>', 'configuration file (default: trawl.yaml)');
}

/** A command that reads: programs get JSON. */
export function withJsonOption(command: Command, what = 'print one JSON document'): Command {
  return withConfigOption(command).option('--json', what);
}

/** Examples at the end of a command's help. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${examples.map((line) => `  ${line}`).join('\n')}`);
}

/** The configuration that the options name, and a logger that knows its secrets. @throws TrawlError `config_*` */
export function readConfig(
  options: CommonOptions,
  logger: (levels: LogLevels) => Logger = createLogger,
): { config: Config; log: Logger } {
  const config = loadConfig({ file: options.config, env: process.env, cwd: process.cwd() });
  const log = logger(config.log);
  for (const secret of configSecrets(config)) log.registerSecret(secret);
  return { config, log };
}

/** For commands that answer and end: what they have to say they say themselves. */
export function quietLogger(): Logger {
  return createLogger({ level: 'error' });
}

export function batchArgument(value: string): string {
  if (isBatch(value)) return value;
  throw new InvalidArgumentError(`Expected ${batchSyntax}.`);
}

export function durationArgument(value: string): number {
  const ms = parseDuration(/^\d+$/.test(value) ? Number(value) : value);
  if (ms === null || ms === 0) throw new InvalidArgumentError(`Expected ${durationSyntax}.`);
  return ms;
}

export function moneyArgument(value: string): number {
  const usd = value.trim() === '' ? Number.NaN : Number(value);
  if (!Number.isFinite(usd) || usd < 0)
    throw new InvalidArgumentError('Expected US dollars, such as 20 or 0.5.');
  return usd;
}

/** @throws TrawlError `server_unknown` with the nearest name */
export function serverNamed(config: Config, name: string): Config['servers'][string] {
  const server = Object.hasOwn(config.servers, name) ? config.servers[name] : undefined;
  if (server !== undefined) return server;
  const names = Object.keys(config.servers);
  throw new TrawlError(
    'server_unknown',
    `There is no server "${cleanText(name, 60)}" in the configuration.`,
    {
      hint: `Did you mean ${nearest(name, names)}? Configured: ${names.join(', ')}.`,
    },
  );
}

/** `SERVER` or `SERVER/TOOL`, the tool as `user/name` or `user--name`. @throws TrawlError `server_unknown`, `usage_invalid` */
export function parsePlace(config: Config, text: string): { server: string; tool: string | null } {
  const slash = text.indexOf('/');
  const server = serverNamed(config, slash < 0 ? text : text.slice(0, slash));
  if (slash < 0) return { server: server.name, tool: null };
  const given = text.slice(slash + 1);
  const allowed = Object.keys(server.tools);
  const tool = resolveTool(given, allowed);
  if (tool !== null) return { server: server.name, tool };
  throw new TrawlError(
    'usage_invalid',
    `"${cleanText(given, 100)}" is not on the allow-list of server ${server.name}.`,
    { hint: `Did you mean ${server.name}/${nearest(given, allowed)}?` },
  );
}
