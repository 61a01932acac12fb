import type { z } from 'zod';
import type { Config, ServerConfig, ToolConfig } from '../config.js';
import { checkJson } from './canonical.js';
import { cleanText, describeType, quote } from './clean-text.js';
import { defaultBatch, derivedId } from './identity.js';
import { jobKeys, jobSchema } from './job-schema.js';
import { nearest, unknownKey } from './nearest.js';
import type { Problem } from './problem.js';
import { canonicalTool, resolveTool } from './tool-name.js';
import type { RunOptions, Scrape } from './types.js';

/** The ways in; also the label of `jobs_invalid_total`. */
export type JobSource = 'file' | 'stdin' | 'bullmq' | 'stream' | 'list' | 'http';

export interface ParseContext {
  readonly config: Config;
  readonly source: JobSource;
  /** Named by the operator (`--batch`): wins over what the job says. */
  readonly batch?: string | undefined;
  /** For a job that names none, such as a file's base name; absent: `default`. */
  readonly defaultBatch?: string | undefined;
  /** Gives a job without an id one; called once the job is known to be plain JSON. */
  readonly nameless?: ((raw: Record<string, unknown>) => string) | undefined;
}

export type ParseResult =
  | { readonly ok: true; readonly scrape: Scrape }
  | { readonly ok: false; readonly problems: readonly Problem[] };

type ParsedJob = z.output<typeof jobSchema>;

/**
 * Validates one job document against design A2 and the configuration, and fills in every default. Never throws,
 * whatever `raw` is; all problems of the job are listed together. `null` for an optional key counts as not given.
 * A job without an id gets one from `context.nameless`, else from its content; BullMQ jobs come through `fromBullJob`.
 */
export function parseJob(raw: unknown, context: ParseContext): ParseResult {
  try {
    return parse(raw, context);
  } catch {
    // Objects of a program (getters, proxies) can throw from anywhere; JSON cannot.
    return {
      ok: false,
      problems: [{ field: 'job', message: 'expected plain JSON, found an object that throws' }],
    };
  }
}

function parse(raw: unknown, context: ParseContext): ParseResult {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    const message = `expected a mapping such as {"tool": …, "input": …}, found ${describeType(raw)}`;
    return { ok: false, problems: [{ field: 'job', message }] };
  }
  const { config } = context;
  const unfit = checkJson(raw, { maxNodes: config.limits.inputBytes + 10_000 });
  if (unfit !== null) {
    const field = unfit.path === '' ? 'job' : cleanText(unfit.path, 80);
    return { ok: false, problems: [{ field, message: unfit.message }] };
  }
  const job = withoutNulls(raw as Record<string, unknown>);
  const result = jobSchema.safeParse(job);
  const problems = result.success ? [] : result.error.issues.flatMap((issue) => explain(issue, job));
  const server = findServer(job.server, config, problems);
  const tool = server === null ? null : findTool(job.tool, server, config, problems);
  checkInputSize(job.input, config, problems);
  if (!result.success || server === null || tool === null) return { ok: false, problems };
  const scrape = fill(raw as Record<string, unknown>, result.data, server, tool, context, problems);
  return problems.length === 0 ? { ok: true, scrape } : { ok: false, problems };
}

function withoutNulls(raw: Record<string, unknown>): Record<string, unknown> {
  const job: Record<string, unknown> = {};
  for (const key of Object.keys(raw)) {
    if (raw[key] === null && key !== 'input') continue;
    job[key] = key === 'options' && isMapping(raw[key]) ? withoutNulls(raw[key]) : raw[key];
  }
  return job;
}

function explain(issue: z.core.$ZodIssue, job: Record<string, unknown>): Problem[] {
  const at = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      field: [...at, cleanText(key, 60)].join('.'),
      message: unknownKey(key, jobKeys(issue.path)),
    }));
  }
  const field = at.join('.') || 'job';
  let value: unknown = job;
  for (const key of issue.path) value = isMapping(value) ? value[String(key)] : undefined;
  if (issue.code !== 'custom')
    return [{ field, message: `expected a mapping, found ${describeType(value)}` }];
  const found = issue.message.includes(', found ') ? '' : `, found ${quote(value)}`;
  return [{ field, message: `expected ${issue.message}${found}` }];
}

function findServer(said: unknown, config: Config, problems: Problem[]): ServerConfig | null {
  const names = Object.keys(config.servers);
  if (said === undefined) {
    const only = names.length === 1 ? config.servers[names[0] ?? ''] : undefined;
    if (only !== undefined) return only;
    problems.push({
      field: 'server',
      message: `expected one of ${names.slice(0, 10).join(', ')}, found nothing: several servers are configured`,
    });
    return null;
  }
  // A wrong type was reported already.
  if (typeof said !== 'string') return null;
  const server = Object.hasOwn(config.servers, said) ? config.servers[said] : undefined;
  if (server !== undefined) return server;
  const message = `expected a configured server, found ${quote(said)}; the nearest one is "${nearest(said, names)}"`;
  problems.push({ field: 'server', message });
  return null;
}

function findTool(
  said: unknown,
  server: ServerConfig,
  config: Config,
  problems: Problem[],
): ToolConfig | null {
  if (typeof said !== 'string') return null;
  const allowed = Object.keys(server.tools);
  const name = resolveTool(said, allowed);
  const tool = name === null ? undefined : server.tools[name];
  if (tool !== undefined) return tool;
  const canonical = said.length > 300 ? null : canonicalTool(said);
  const file = config.file === null ? 'trawl.yaml' : cleanText(config.file.split(/[\\/]/).at(-1), 60);
  const near = nearest(canonical ?? said, allowed);
  const message =
    canonical === null
      ? `expected an Actor as user/name, or its MCP tool name, found ${quote(said)}; the nearest allowed one is "${near}"`
      : `${quote(canonical)} is not on the allow-list of server "${server.name}"; ` +
        `add "- ${cleanText(canonical, 80)}" under servers.${server.name}.tools in ${file}, or use "${near}", the nearest one there`;
  problems.push({ field: 'tool', message });
  return null;
}

function checkInputSize(input: unknown, config: Config, problems: Problem[]): void {
  if (!isMapping(input)) return;
  const bytes = Buffer.byteLength(JSON.stringify(input));
  const max = config.limits.inputBytes;
  if (bytes <= max) return;
  const message = `expected at most ${max} bytes of JSON (limits.inputBytes), found ${bytes}`;
  problems.push({ field: 'input', message });
}

function fill(
  raw: Record<string, unknown>,
  job: ParsedJob,
  server: ServerConfig,
  tool: ToolConfig,
  context: ParseContext,
  problems: Problem[],
): Scrape {
  return {
    id: job.id ?? context.nameless?.(raw) ?? derivedId(raw, 1),
    batch: context.batch ?? job.batch ?? context.defaultBatch ?? defaultBatch,
    server: server.name,
    tool: tool.name,
    input: job.input,
    deadlineMs: job.deadline ?? tool.deadlineMs ?? context.config.deadlineMs,
    expiresInMs: job.expiresIn ?? null,
    priority: job.priority,
    retries: job.retries,
    minItems: job.minItems ?? tool.minItems ?? 1,
    onEmpty: job.onEmpty,
    options: runOptions(job.options, server, tool, problems),
    fields: job.fields,
    records: job.records,
    meta: job.meta,
  };
}

function runOptions(
  asked: ParsedJob['options'],
  server: ServerConfig,
  tool: ToolConfig,
  problems: Problem[],
): RunOptions {
  const { timeout, ...rest } = asked;
  if (server.via === 'direct') {
    // An Actor's own tool ignores options without a word (apify-contract, Tools); never start without them (B4).
    if (Object.keys(asked).length > 0) {
      const message = `expected none, found some: server "${server.name}" starts runs with via: direct, which takes no options`;
      problems.push({ field: 'options', message });
    }
    return {};
  }
  const memory = asked.memory ?? tool.memory ?? undefined;
  const cap = server.limits.memoryMb;
  if (memory !== undefined && cap !== null && memory > cap) {
    const message = `expected at most ${cap} (limits.memoryMb of server "${server.name}"), found ${memory}`;
    problems.push({ field: 'options.memory', message });
  }
  return {
    ...rest,
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    ...(memory === undefined ? {} : { memory }),
  };
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
