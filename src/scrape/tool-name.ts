import { createHash } from 'node:crypto';

const actorName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\/[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const maxToolNameLength = 64;
const hashLength = 4;

/**
 * The canonical Actor name `user/name` of a tool however it was written: `user/name`, `user~name`, or the MCP tool
 * name `user--name` (a dot in the user as `-dot-`). null when it is none of these. An MCP name is read at its first
 * `--`; where an allow-list is known, `resolveTool` is exact.
 */
export function canonicalTool(raw: string): string | null {
  let name: string;
  if (raw.includes('/')) name = raw;
  else if (raw.includes('~')) name = raw.replace('~', '/');
  else {
    const at = raw.indexOf('--', 1);
    if (at < 0) return null;
    name = `${raw.slice(0, at).replaceAll('-dot-', '.')}/${raw.slice(at + 2)}`;
  }
  return actorName.test(name) ? name : null;
}

/**
 * The MCP tool name of an Actor, as the Apify server makes it: `user/name` → `user--name`, a dot in the user →
 * `-dot-`, over 64 characters cut and ended with `-` and 4 hex digits of the sha256 of `user/name` (apify-contract,
 * Tools; read in the server's `actor_tool_naming.js`, 0.16.0).
 */
export function mcpToolName(actor: string): string {
  const slash = actor.indexOf('/');
  const full =
    slash < 0 ? actor : `${actor.slice(0, slash).replaceAll('.', '-dot-')}--${actor.slice(slash + 1)}`;
  if (full.length <= maxToolNameLength) return full;
  const hash = createHash('sha256').update(actor).digest('hex').slice(0, hashLength);
  return `${full.slice(0, maxToolNameLength - hashLength - 1)}-${hash}`;
}

/**
 * Finds a written tool on an allow-list of canonical names: the Actor name in any form, or the exact MCP tool name,
 * cut ones included. null when it is not allowed.
 */
export function resolveTool(raw: string, allowed: Iterable<string>): string | null {
  if (raw.length > 300) return null;
  const canonical = canonicalTool(raw);
  let found: string | null = null;
  for (const actor of allowed) {
    if (actor === canonical) return actor;
    if (found === null && mcpToolName(actor) === raw) found = actor;
  }
  return found;
}
