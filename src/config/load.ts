import { dirname, isAbsolute, relative, resolve } from 'node:path';
import type { z } from 'zod';
import type { Config, ServerConfig } from '../config.js';
import { TrawlError } from '../errors.js';
import { describeType, quote } from '../scrape/clean-text.js';
import { unknownKey } from '../scrape/nearest.js';
import { applyOverrides, type ConfigOptions } from './overrides.js';
import { type ConfigProblem, isSecretKey, type Path, problemText } from './problem.js';
import { readRedis } from './redis.js';
import { configSchema, knownKeys, listSchema, type RawConfig, schemaAt } from './schema.js';
import { createScrubber } from './scrub.js';
import { guard, readSecretFiles, treeSecrets } from './secrets.js';
import { isServerName, readServer } from './servers.js';
import { isMap, originOf, pathKey, type Tree, valueAt } from './tree.js';
import { warningsOf } from './warnings.js';
import { parseYaml, readConfigText } from './yaml-file.js';

const defaultFile = 'trawl.yaml';
const shownProblems = 50;

/** The smallest configuration that starts anything. */
export const minimalConfig = `servers:
  apify:
    token: "\${APIFY_TOKEN}"
    tools:
      - compass/crawler-google-places
`;

/**
 * Reads, expands, overrides, validates, cross-checks and freezes the configuration (design A3). Everything that is
 * wrong with it is said in one error, each with file, line, path, expected and found; no secret is quoted.
 * @throws TrawlError `config_missing`, `config_invalid`, `config_env_missing`, `config_secret_unreadable`.
 */
export function loadConfig(options: ConfigOptions): Config {
  const file = options.text === undefined ? resolve(options.cwd, options.file ?? defaultFile) : null;
  const label = file === null ? 'built-in configuration' : shortPath(file, options.cwd);
  const { tree, problems } = parseYaml(options.text ?? readFile(file ?? '', label), options.env);
  if (problems.length > 0 && tree.root === undefined) throw problemsError(label, problems, tree);

  problems.push(...applyOverrides(tree, options));
  const folder = file === null ? options.cwd : dirname(file);
  // A path in the file is meant from the file's folder, one on the command line or in the environment from here.
  const baseOf = (path: Path) => {
    const origin = originOf(tree, path);
    return origin !== null && 'override' in origin ? options.cwd : folder;
  };
  problems.push(...readSecretFiles(tree, baseOf));
  const raw = validate(tree, problems);
  if (raw === null) throw problemsError(label, problems, tree);
  const config = build(raw, tree, problems, {
    file,
    resultsDir: resolve(baseOf(['results', 'dir']), raw.results.dir),
  });
  if (problems.length > 0) throw problemsError(label, problems, tree);
  return deepFreeze({ ...config, warnings: warningsOf(config) });
}

function readFile(file: string, label: string): string {
  try {
    return readConfigText(file, label);
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code !== 'config_missing') throw error;
    const hint = `Write a ${defaultFile} such as this one, or name another file with --config:\n\n${minimalConfig}`;
    throw new TrawlError('config_missing', error.message, { hint });
  }
}

function shortPath(file: string, cwd: string): string {
  const short = relative(cwd, file);
  return short === '' || short.startsWith('..') || isAbsolute(short) ? file : short;
}

function validate(tree: Tree, problems: ConfigProblem[]): RawConfig | null {
  const invalid = (path: Path, message: string) =>
    problems.push({ path, origin: originOf(tree, path), message, code: 'config_invalid' });
  const servers = valueAt(tree.root, ['servers']);
  if (isMap(servers)) {
    for (const name of Object.keys(servers)) {
      if (isServerName(name)) continue;
      invalid(
        ['servers', name],
        'expected a server name of a-z, 0-9 and "-", at most 32 characters, found another',
      );
    }
  }
  const noServers =
    tree.root !== undefined && !isMap(tree.root)
      ? false
      : isMap(servers)
        ? Object.keys(servers).length === 0
        : servers === undefined;
  if (noServers) invalid(['servers'], 'expected at least one server, found none');

  const broken = new Set(problems.filter(({ path }) => path.length > 0).map(({ path }) => pathKey(path)));
  const result = configSchema.safeParse(tree.root ?? {});
  if (result.success) return problems.length === 0 ? result.data : null;
  for (const issue of result.error.issues) {
    // What could not be expanded or read was reported already.
    if (broken.has(pathKey(issue.path as Path)) || (noServers && issue.path[0] === 'servers')) continue;
    for (const { path, message } of explain(issue, tree)) invalid(path, message);
  }
  return null;
}

function explain(issue: z.core.$ZodIssue, tree: Tree): { path: Path; message: string }[] {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], message: unknownKey(key, knownKeys(path)) }));
  }
  const found = foundAt(tree, path);
  if (issue.code === 'custom') {
    const whole = issue.message.includes(', found ');
    return [{ path, message: `expected ${issue.message}${whole ? '' : `, found ${found}`}` }];
  }
  const list = listSchema(schemaAt(path)) !== null;
  if (issue.code === 'too_small')
    return [{ path, message: 'expected at least one entry, found an empty list' }];
  if (issue.code === 'too_big')
    return [{ path, message: `expected at most ${issue.maximum} entries, found more` }];
  const value = valueAt(tree.root, path);
  return [{ path, message: `expected ${list ? 'a list' : 'a mapping'}, found ${describeType(value)}` }];
}

/** A value as it may be printed: secrets by their type, expanded text as it was written. */
function foundAt(tree: Tree, path: Path): string {
  // A tool may be written as its name alone: then the text stands where a mapping was looked for.
  const parent = path.slice(0, -1);
  const at = path.at(-1) === 'name' && typeof valueAt(tree.root, parent) === 'string' ? parent : path;
  const value = valueAt(tree.root, at);
  if (at.some(isSecretKey)) return describeType(value);
  const written = tree.written.get(pathKey(at));
  return written === undefined ? quote(value) : `the value of ${quote(written)}`;
}

function build(
  raw: RawConfig,
  tree: Tree,
  problems: ConfigProblem[],
  places: { file: string | null; resultsDir: string },
): Omit<Config, 'warnings'> {
  const report = (path: Path, message: string) =>
    problems.push({ path, origin: originOf(tree, path), message, code: 'config_invalid' });
  const redis = readRedis(raw.redis);
  if (!redis.ok) report(['redis', redis.key], redis.message);
  // Without a prototype: a job's server is looked up here.
  const servers: Record<string, ServerConfig> = Object.create(null);
  for (const [name, server] of Object.entries(raw.servers)) servers[name] = readServer(name, server, report);
  return {
    file: places.file,
    redis: redis.ok ? redis.redis : { url: '', tls: false },
    prefix: raw.prefix,
    servers,
    start: { timeoutMs: raw.start.timeout },
    poll: { intervalMs: raw.poll.interval, waitSecs: raw.poll.waitSecs },
    deadlineMs: raw.deadline,
    keep: { settledMs: raw.keep.settled, failedMs: raw.keep.failed, max: raw.keep.max },
    results: {
      sink: raw.results.sink,
      dir: places.resultsDir,
      gzip: raw.results.gzip,
      pageBytes: raw.results.pageBytes,
    },
    limits: raw.limits,
    intake: raw.intake,
    http: guard(
      {
        host: raw.http.host,
        port: raw.http.port,
        token: raw.http.token || null,
        names: raw.http.names,
        trustedProxies: raw.http.trustedProxies,
      },
      ['token'],
    ),
    shutdown: { graceMs: raw.shutdown.grace },
    retry: { backoffMs: raw.retry.backoff },
    brake: raw.brake,
    traces: guard({ endpoint: raw.traces.endpoint, headers: raw.traces.headers, ratio: raw.traces.ratio }, [
      'headers',
    ]),
    log: raw.log,
  };
}

function problemsError(label: string, problems: readonly ConfigProblem[], tree: Tree): TrawlError {
  const scrubber = createScrubber(treeSecrets(tree));
  const sorted = problems.toSorted((a, b) => lineOf(a) - lineOf(b));
  const lines = sorted.slice(0, shownProblems).map((problem) => scrubber.scrub(problemText(label, problem)));
  if (problems.length > lines.length) lines.push(`${label}: and ${problems.length - lines.length} more`);
  const [code] = new Set(problems.map((problem) => problem.code));
  const same = problems.every((problem) => problem.code === code);
  return new TrawlError(same && code !== undefined ? code : 'config_invalid', lines.join('\n'));
}

/** Problems of the file come in its order, then those of overrides. */
function lineOf({ origin }: ConfigProblem): number {
  return origin !== null && 'line' in origin ? origin.line : Number.MAX_SAFE_INTEGER;
}

function deepFreeze<T extends object>(value: T): T {
  for (const member of Object.values(value)) {
    if (typeof member === 'object' && member !== null && !Object.isFrozen(member)) deepFreeze(member);
  }
  return Object.freeze(value);
}
