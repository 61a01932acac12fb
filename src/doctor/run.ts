import { hostname } from 'node:os';
import type { Redis } from 'ioredis';
import type { Config, ServerConfig } from '../config.js';
import { type ErrorCode, TrawlError } from '../errors.js';
import type { ScrapeServer } from '../mcp/port.js';
import { checkRedis } from '../redis/checks.js';
import { connectRedis, describeRedis, type ResolvedRedis, resolveRedis } from '../redis/connection.js';
import type { RedisLog } from '../redis/log.js';
import { cleanText } from '../scrape/clean-text.js';
import { type Check, fail, ok, warn } from './check.js';
import { checkNode } from './node.js';
import { checkResults, checkShared } from './results.js';
import { checkServer } from './servers.js';

export interface Section {
  readonly title: string;
  readonly checks: readonly Check[];
}

export interface DoctorOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `process.versions.node`. */
  readonly nodeVersion: string;
  readonly log: RedisLog;
  /** Throws TrawlError. */
  readonly loadConfig: () => Config;
  readonly openServer: (server: ServerConfig, config: Config) => ScrapeServer;
}

/** Looks at everything Trawl needs, and goes on after a failure as far as it can. Never throws for what it finds. */
export async function runDoctor(options: DoctorOptions): Promise<Section[]> {
  const node = { title: 'Node', checks: [checkNode(options.nodeVersion)] };
  let config: Config;
  try {
    config = options.loadConfig();
  } catch (error) {
    return [node, { title: 'Configuration', checks: [failure('file', error)] }];
  }
  const servers = Object.values(config.servers);
  const [{ redis, shared }, results, ...rest] = await Promise.all([
    redisSection(config, options),
    checkResults(config.results.dir).catch((error) => [failure('writable', error)]),
    ...servers.map((server) => serverSection(server, config, options)),
  ]);
  const checks =
    shared === null || results.some((check) => check.ok === 'fail') ? results : [...results, await shared()];
  await redis.close();
  return [node, configSection(config), redis.section, { title: 'Results', checks }, ...rest];
}

function configSection(config: Config): Section {
  const servers = Object.values(config.servers);
  const tools = servers.reduce((sum, server) => sum + Object.keys(server.tools).length, 0);
  const found = `${config.file ?? 'built in'}: ${count(servers.length, 'server')}, ${count(tools, 'tool')}`;
  const warnings = config.warnings.map((text) =>
    warn('setting', text, 'Change it, or go on if it is meant.'),
  );
  return { title: 'Configuration', checks: [ok('file', found), ...warnings] };
}

/** `shared` looks at the results directory, and has to wait until that was found to be writable. */
async function redisSection(config: Config, options: DoctorOptions) {
  let resolved: ResolvedRedis | undefined;
  let client: Redis | undefined;
  const close = async () => {
    client?.disconnect();
    await resolved?.release();
  };
  try {
    resolved = await resolveRedis(config, options);
    const label = describeRedis(resolved.target);
    const title = resolved.private ? 'Redis (private)' : 'Redis';
    client = await connectRedis(resolved.target, {
      role: 'producer',
      log: options.log,
      name: 'trawl-doctor',
      timeoutMs: 2_000,
    });
    const connected = client;
    const checks = await checkRedis(connected, label);
    const shared = async () => {
      try {
        return await checkShared(connected, config.prefix, config.results.dir, hostname());
      } catch (error) {
        return failure('shared', error);
      }
    };
    return { redis: { section: { title, checks }, close }, shared: resolved.private ? null : shared };
  } catch (error) {
    return {
      redis: { section: { title: 'Redis', checks: [failure('reachable', error)] }, close },
      shared: null,
    };
  }
}

async function serverSection(own: ServerConfig, config: Config, options: DoctorOptions): Promise<Section> {
  const title = `Server ${own.name}`;
  let server: ScrapeServer | undefined;
  try {
    server = options.openServer(own, config);
    return { title, checks: await checkServer(server, own, config) };
  } catch (error) {
    return { title, checks: [failure('reachable', error)] };
  } finally {
    await server?.close();
  }
}

/** What to do about errors that say what is wrong and not what to do. */
const hints: Partial<Record<ErrorCode, string>> = {
  config_invalid: 'Correct the lines named above; docs/configuration.md lists every key.',
  config_env_missing:
    'Set the variable, or give it a default in the file (NAME:-default), or use a *File key.',
  redis_unreachable:
    'Start that Redis, or correct redis.url; with an empty redis.url Trawl starts a private one by itself.',
  config_secret_unreadable: 'Check the path and that this user may read it.',
};

function failure(name: string, error: unknown): Check {
  const lines = (error instanceof Error ? error.message : String(error)).slice(0, 20_000).split('\n');
  const message = lines.map((line) => cleanText(line, 500)).join('\n');
  if (!(error instanceof TrawlError))
    return fail(name, message, 'This is a fault of Trawl; please report it.');
  return fail(name, message, hints[error.code] ?? error.hint ?? 'The message says what was expected.');
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}
