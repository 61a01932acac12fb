import type { Command } from 'commander';
import type { Config } from '../config.js';
import { TrawlError } from '../errors.js';
import { createLimiter, memoryTokens } from '../mcp/limiter.js';
import type { ServerDescription } from '../mcp/port.js';
import { createApifyServer } from '../mcp/profiles/apify.js';
import { cleanText } from '../scrape/clean-text.js';
import { version } from '../version.js';
import { counted } from './format.js';
import {
  type CommonOptions,
  quietLogger,
  readConfig,
  serverNamed,
  withExamples,
  withJsonOption,
} from './options.js';
import { print, printJson, table } from './output.js';

const timeoutMs = 30_000;
const shownFields = 12;

interface ToolRow {
  readonly tool: string;
  readonly found: boolean;
  readonly toolName: string | null;
  /** null: the server shows no schema of the input. */
  readonly required: readonly string[] | null;
  readonly fields: readonly string[] | null;
}

/** Adds `trawl tools`: the allow-list beside what the server shows. */
export function registerTools(program: Command): void {
  const command = program
    .command('tools')
    .description(
      'list the allowed tools of a server: found or missing, and what their input takes; starts nothing',
    )
    .argument('[server]', 'a configured server (may be left out when there is but one)')
    .action(async (name: string | undefined, _options: CommonOptions, self: Command) => {
      await tools(name, self.optsWithGlobals<CommonOptions>());
    });
  withJsonOption(command);
  withExamples(command, 'trawl tools apify', "trawl tools apify --json | jq '.tools[].required'");
}

async function tools(name: string | undefined, options: CommonOptions): Promise<void> {
  const { config, log } = readConfig(options, quietLogger);
  const server = serverNamed(config, name ?? onlyServer(config));
  const port = createApifyServer({
    server,
    answerBytes: config.limits.answerBytes,
    // Two or three calls, made whether or not Redis, which counts everybody's, can be reached.
    limiter: createLimiter(memoryTokens(server.limits.requestsPerSecond)),
    observe: () => {},
    log,
    version,
  });
  try {
    const seen = await port.describe({ fresh: true, signal: AbortSignal.timeout(timeoutMs) });
    if (!seen.ok) {
      const said = cleanText(seen.failure.message, 300);
      throw new TrawlError('server_failed', `Server ${server.name} (${server.url}): ${said}`, {
        hint: 'trawl doctor says what to do.',
      });
    }
    const rows = rowsOf(seen.value, Object.keys(server.tools));
    if (options.json) printJson({ server: server.name, via: seen.value.via, tools: rows });
    else for (const line of lines(rows)) print(line);
    const missing = rows.filter((row) => !row.found).length;
    if (missing > 0) {
      throw new TrawlError(
        'tools_missing',
        `${counted(missing, 'allowed tool')} not shown by ${server.name}.`,
        {
          hint: `Check the names in servers.${server.name}.tools, and that the token may use them.`,
        },
      );
    }
  } finally {
    await port.close();
  }
}

function onlyServer(config: Config): string {
  const names = Object.keys(config.servers);
  if (names.length === 1) return names[0] as string;
  throw new TrawlError('usage_invalid', `Expected the name of a server, one of ${names.join(', ')}.`);
}

function rowsOf(seen: ServerDescription, allowed: readonly string[]): ToolRow[] {
  return allowed.map((tool) => {
    const found = seen.tools.get(tool);
    const schema = found?.inputSchema as { properties?: unknown; required?: unknown } | null | undefined;
    const properties = schema?.properties;
    const fields = typeof properties === 'object' && properties !== null ? Object.keys(properties) : null;
    const required = Array.isArray(schema?.required)
      ? schema.required.map((field) => cleanText(field, 80))
      : [];
    return {
      tool,
      found: found !== undefined,
      toolName: found?.toolName ?? null,
      required: schema ? required : null,
      fields: fields?.map((field) => cleanText(field, 80)) ?? null,
    };
  });
}

function lines(rows: readonly ToolRow[]): string[] {
  return table(
    [{ title: 'TOOL' }, { title: 'STATE' }, { title: 'REQUIRED' }, { title: 'ALSO TAKES' }],
    rows.map((row) => {
      const others = (row.fields ?? []).filter((field) => !row.required?.includes(field));
      const more = others.length - shownFields;
      return [
        row.tool,
        row.found ? 'found' : 'MISSING',
        row.required === null ? (row.found ? 'not told' : '') : row.required.join(', ') || 'nothing',
        `${others.slice(0, shownFields).join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
      ];
    }),
  );
}
