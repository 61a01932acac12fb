import { TrawlError } from '../../errors.js';
import { cleanText } from '../../scrape/clean-text.js';
import { batchSyntax, idSyntax, isBatch, isId } from '../../scrape/identity.js';
import { nearest } from '../../scrape/nearest.js';
import { resolveTool } from '../../scrape/tool-name.js';
import type { HttpParts } from '../parts.js';

/** Everything a request says is checked here; what passes may be looked up, and become a path or a key. */

/** @throws TrawlError `usage_invalid` */
export function scrapeIn(params: unknown): { batch: string; id: string } {
  const { batch, id } = params as Record<string, unknown>;
  if (!isBatch(batch)) throw invalid(`Expected a batch of ${batchSyntax}.`);
  if (!isId(id)) throw invalid(`Expected an id of ${idSyntax}.`);
  return { batch, id };
}

/** @throws TrawlError `server_unknown` */
export function serverIn(parts: Pick<HttpParts, 'servers'>, name: unknown): string {
  const known = parts.servers.find((server) => server === name);
  if (known !== undefined) return known;
  throw new TrawlError('server_unknown', `There is no server "${cleanText(name, 60)}".`, {
    hint: `Configured: ${parts.servers.join(', ')}.`,
  });
}

/** The tool in a body `{"tool": "user/name"}`, null without one. @throws TrawlError `usage_invalid` */
export function toolIn(parts: Pick<HttpParts, 'config'>, server: string, body: unknown): string | null {
  if (body === undefined || body === null) return null;
  if (typeof body !== 'object' || Array.isArray(body) || Object.keys(body).some((key) => key !== 'tool')) {
    throw invalid('Expected no body, or {"tool": "user/name"}.');
  }
  const { tool } = body as { tool?: unknown };
  if (tool === undefined || tool === null) return null;
  const allowed = Object.keys(parts.config.servers[server]?.tools ?? {});
  const known = typeof tool === 'string' ? resolveTool(tool, allowed) : null;
  if (known !== null) return known;
  throw new TrawlError(
    'usage_invalid',
    `"${cleanText(tool, 100)}" is not on the allow-list of server ${server}.`,
    { hint: `Did you mean ${nearest(String(tool).slice(0, 300), allowed)}?` },
  );
}

/** The attempt in a body `{"attempt": 2}`, null without one. @throws TrawlError `usage_invalid` */
export function attemptIn(body: unknown): number | null {
  if (body === undefined || body === null) return null;
  const { attempt, ...rest } = body as { attempt?: unknown };
  if (
    typeof body !== 'object' ||
    Array.isArray(body) ||
    Object.keys(rest).length > 0 ||
    !isAttempt(attempt)
  ) {
    throw invalid('Expected no body, or {"attempt": N}, the attempt that failed.');
  }
  return attempt;
}

const isAttempt = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) > 0;

/** One of a few words in a query, `fallback` when it is absent. @throws TrawlError `usage_invalid` */
export function wordIn<const T extends string>(
  query: unknown,
  key: string,
  words: readonly T[],
  fallback: T,
): T {
  const value = (query as Record<string, unknown>)[key];
  if (value === undefined) return fallback;
  const word = words.find((each) => each === value);
  if (word !== undefined) return word;
  throw invalid(`${key}: expected one of ${words.join(', ')}.`);
}

/** A whole number in a query or path. @throws TrawlError `usage_invalid` */
export function wholeIn(
  values: unknown,
  key: string,
  bounds: { readonly min: number; readonly max: number; readonly fallback?: number },
): number {
  const value = (values as Record<string, unknown>)[key];
  if (value === undefined && bounds.fallback !== undefined) return bounds.fallback;
  const number = typeof value === 'string' && /^\d{1,12}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= bounds.min && number <= bounds.max) return number;
  throw invalid(`${key}: expected a whole number from ${bounds.min} to ${bounds.max}.`);
}

/** `cursor` of a query; null for the first page. What it may look like is the list's to say. */
export function cursorIn(query: unknown): string | null {
  const { cursor } = query as Record<string, unknown>;
  if (cursor === undefined) return null;
  if (typeof cursor === 'string' && cursor.length <= 64) return cursor;
  throw invalid('cursor: expected "next" of the page before.');
}

/** A list's page. @throws TrawlError `usage_invalid` when the list did not know the cursor */
export function known<T>(page: T | null): T {
  if (page === null) throw invalid('cursor: expected "next" of the page before.');
  return page;
}

function invalid(message: string): TrawlError {
  return new TrawlError('usage_invalid', message, { hint: 'docs/api.md describes the routes.' });
}
