import { createHash } from 'node:crypto';
import type { ServerConfig } from '../../config.js';
import type { ServerDescription } from '../port.js';

/** Tool names of Apify's MCP server that the profile lives on (apify-contract, Tools). */
export const helper = {
  getRun: 'get-actor-run',
  getItems: 'get-dataset-items',
  getRecord: 'get-key-value-store-record',
  abortRun: 'abort-actor-run',
  listRuns: 'get-actor-run-list',
  callActor: 'call-actor',
} as const;

const required = [helper.getRun, helper.getItems, helper.getRecord, helper.abortRun];

/** What the server has allowed since the first version; used until the schema or a refusal says otherwise. */
export const usualWaitSecsCap = 45;

/** One entry of tools/list, as far as it is used. */
export interface ListedTool {
  readonly name: string;
  readonly title: string | null;
  readonly inputSchema: Readonly<Record<string, unknown>> | null;
}

/** The configured address with `?tools=<allow-list>,call-actor,runs`; what else it carries is kept (design B4). */
export function endpointOf(server: Pick<ServerConfig, 'url' | 'tools'>): URL {
  const url = new URL(server.url);
  url.searchParams.set('tools', [...Object.keys(server.tools), helper.callActor, 'runs'].join(','));
  return url;
}

/**
 * The MCP tool name of an Actor: `user/name` → `user--name`, a dot in the user → `-dot-`, over 64 characters cut with
 * `-` and 4 hex digits of sha256 (actors-mcp-server 0.16.0, `actorNameToToolName`).
 */
export function toolNameOf(actor: string): string {
  const slash = actor.indexOf('/');
  if (slash === -1) return actor;
  const full = `${actor.slice(0, slash).replaceAll('.', '-dot-')}--${actor.slice(slash + 1)}`;
  if (full.length <= 64) return full;
  return `${full.slice(0, 59)}-${createHash('sha256').update(actor).digest('hex').slice(0, 4)}`;
}

/** Reads one page of tools/list. null: not a tools list. Entries without a plausible name are left out. */
export function readTools(
  result: Record<string, unknown>,
): { tools: ListedTool[]; nextCursor: string | null } | null {
  if (!Array.isArray(result.tools)) return null;
  const tools: ListedTool[] = [];
  for (const entry of result.tools as unknown[]) {
    if (typeof entry !== 'object' || entry === null) continue;
    const { name, title, inputSchema } = entry as Record<string, unknown>;
    if (typeof name !== 'string' || !/^[\w./:~-]{1,128}$/.test(name)) continue;
    tools.push({
      name,
      title: typeof title === 'string' ? title : null,
      inputSchema: isObject(inputSchema) ? inputSchema : null,
    });
  }
  const { nextCursor } = result;
  return { tools, nextCursor: typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : null };
}

/** Helpers the server does not show. */
export function missingHelpers(tools: readonly ListedTool[]): string[] {
  return required.filter((name) => !tools.some((tool) => tool.name === name));
}

/** What a list of tools means for the configured server. `serverInfo` is what the server called itself. */
export function describeTools(
  server: ServerConfig,
  listed: readonly ListedTool[],
  serverInfo: { name: string; version: string },
): ServerDescription {
  const byName = new Map(listed.map((tool) => [tool.name, tool]));
  const tools = new Map<string, { toolName: string; inputSchema: object | null }>();
  const missing: string[] = [];
  for (const actor of Object.keys(server.tools)) {
    // The title is the Actor's full name: it finds the tool when a later version names tools in another way.
    const tool = byName.get(toolNameOf(actor)) ?? listed.find(({ title }) => title === actor);
    if (tool) tools.set(actor, { toolName: tool.name, inputSchema: actorSchema(tool.inputSchema) });
    else missing.push(actor);
  }
  return {
    serverName: serverInfo.name.slice(0, 100),
    serverVersion: serverInfo.version.slice(0, 100),
    toolNames: listed.map(({ name }) => name),
    tools,
    missing,
    via: server.via === 'auto' && byName.has(helper.callActor) ? 'call-actor' : 'direct',
    waitSecsCap: waitSecsCapOf(byName.get(helper.getRun)?.inputSchema ?? null),
    canList: byName.has(helper.listRuns),
  };
}

function waitSecsCapOf(schema: Readonly<Record<string, unknown>> | null): number {
  const properties = schema?.properties;
  const waitSecs = isObject(properties) ? properties.waitSecs : undefined;
  if (!isObject(waitSecs)) return 0;
  const { maximum } = waitSecs;
  return typeof maximum === 'number' && maximum >= 0 && maximum <= 3_600
    ? Math.floor(maximum)
    : usualWaitSecsCap;
}

/**
 * The Actor's own input schema out of its tool's: without the `waitSecs` the server adds, and with the dots in field
 * names that it writes as `-dot-`.
 */
function actorSchema(schema: Readonly<Record<string, unknown>> | null): object | null {
  if (schema === null || !isObject(schema.properties)) return schema;
  const restored = (name: string) => name.replaceAll('-dot-', '.');
  const entries = Object.entries(schema.properties)
    .filter(([name, value]) => !(name === 'waitSecs' && isObject(value) && value.maximum !== undefined))
    .map(([name, value]) => [restored(name), value] as const);
  const requiredNames = schema.required;
  return {
    ...schema,
    properties: Object.fromEntries(entries),
    ...(Array.isArray(requiredNames)
      ? { required: requiredNames.map((name) => (typeof name === 'string' ? restored(name) : name)) }
      : {}),
  };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
