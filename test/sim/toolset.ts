import type { ActorSpec } from './actors/actor.js';
import { catalogue, findActor, toolNameOf } from './actors/catalogue.js';
import type { Conditions } from './conditions.js';
import { actorTool, helperDefinitions, type ToolDefinition } from './tool-definitions.js';

/** Categories the URL may name; the real server's `storage` holds some more tools that nothing here needs. */
const categories: Readonly<Record<string, readonly string[]>> = {
  runs: ['get-actor-run', 'get-actor-run-list', 'get-actor-run-log', 'abort-actor-run'],
  storage: ['get-dataset', 'get-dataset-items', 'get-key-value-store-record'],
  actors: ['call-actor'],
};
const injected = ['get-actor-run', 'get-dataset-items', 'get-key-value-store-record', 'abort-actor-run'];
const helperNames = new Set([
  ...injected,
  'call-actor',
  'get-actor-run-list',
  'get-actor-run-log',
  'get-dataset',
]);
const retired = new Set(['preview', 'experimental', 'add-actor', 'get-actor-log']);

/** The tools of a session, in the order they are listed: helper names and Actors. */
export type Toolset = ReadonlyMap<string, ActorSpec | null>;

/**
 * What `?tools=` and `?actors=` select (apify-contract, Tools). What is unknown is left out without a word, so that a
 * misspelt Actor or a tool name in place of one yields an empty list.
 */
export function toolsetOf(query: URLSearchParams): Toolset {
  const tools = query.get('tools');
  const actors = query.get('actors');
  const selectors = tools === null ? null : split(tools);
  const helpers: string[] = [];
  const actorNames: string[] = [];
  if (selectors === null && actors === null) {
    helpers.push('call-actor');
    actorNames.push('apify/rag-web-browser');
  }
  for (const selector of selectors ?? []) {
    if (retired.has(selector)) continue;
    if (Object.hasOwn(categories, selector)) helpers.push(...(categories[selector] ?? []));
    else if (helperNames.has(selector)) helpers.push(selector);
    else actorNames.push(selector);
  }
  const wanted = actors === null ? actorNames : split(actors);
  const found = wanted.map(findActor).filter((actor) => actor !== null);
  const order: (string | ActorSpec)[] = [...helpers, ...found];
  if (found.length > 0 || helpers.includes('call-actor') || helpers.includes('get-actor-run')) {
    const after = order.indexOf('call-actor');
    order.splice(after < 0 ? order.length : after + 1, 0, ...injected);
  }
  const toolset = new Map<string, ActorSpec | null>();
  for (const entry of order) {
    if (typeof entry === 'string') toolset.set(entry, toolset.get(entry) ?? null);
    else toolset.set(toolNameOf(entry.name), entry);
  }
  return toolset;
}

function split(list: string): string[] {
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
    .slice(0, 1000);
}

/** The names a session sees now: the world's conditions may have taken some away. */
export function visibleTools(toolset: Toolset, conditions: Conditions, tokenIsDead: boolean): string[] {
  if (conditions.toolsListEmpty || (tokenIsDead && conditions.authMode === 'empty_tools')) return [];
  const hidden = new Set(conditions.hiddenTools);
  return [...toolset]
    .filter(([name, actor]) => !hidden.has(name) && !hidden.has(actor?.name ?? ''))
    .map(([name]) => name);
}

/** The definition of a tool under the present conditions. */
export function definitionOf(name: string, actor: ActorSpec | null, conditions: Conditions): ToolDefinition {
  const cap = conditions.waitSecsCap;
  const tool = actor === null ? helperDefinitions(cap).get(name) : actorTool(actor, cap);
  if (tool === undefined) throw new Error(`no definition of the tool ${name}`);
  const changed =
    conditions.changedSchemas.includes(name) || conditions.changedSchemas.includes(actor?.name ?? '');
  if (!changed) return tool;
  const schema = tool.inputSchema as { properties: object; required?: readonly string[] };
  return {
    ...tool,
    inputSchema: {
      ...schema,
      properties: {
        ...schema.properties,
        [changedField]: { type: 'string', description: 'New in this version' },
      },
      required: [...(schema.required ?? []), changedField],
    },
  };
}

/** What a tool with a changed schema requires all of a sudden. */
export const changedField = 'schemaVersion';

export const knownActors = (): string[] => catalogue.map((actor) => actor.name);
