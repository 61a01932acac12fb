import { createHash } from 'node:crypto';
import { canonicalJson, shortHash } from './canonical.js';
import { cleanText, describeType, quote } from './clean-text.js';
import type { Problem } from './problem.js';

const batchPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;
const idPattern = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9_-])?$/;
const allDigits = /^\d+$/;

export const defaultBatch = 'default';

/** How ids and batch names look, for error messages (design A2). */
export const idSyntax =
  'letters, digits, "_", "-" and, inside, "."; first a letter or digit; at most 128 characters; not digits alone';
export const batchSyntax =
  'letters, digits, "_" and "-"; first a letter or digit; at most 128 characters; not digits alone';

export function isId(value: unknown): value is string {
  return typeof value === 'string' && idPattern.test(value) && !allDigits.test(value);
}

export function isBatch(value: unknown): value is string {
  return typeof value === 'string' && batchPattern.test(value) && !allDigits.test(value);
}

/**
 * The BullMQ job id of a scrape, `<batch>.<id>` (design A2). A batch has no dots, so the first one ends it and two
 * scrapes never share a key.
 */
export function jobKey(batch: string, id: string): string {
  return `${batch}.${id}`;
}

/** The two parts of a job key; null when it is not one. */
export function splitJobKey(key: string): { batch: string; id: string } | null {
  const dot = key.indexOf('.');
  if (dot < 0) return null;
  const batch = key.slice(0, dot);
  const id = key.slice(dot + 1);
  return isBatch(batch) && isId(id) ? { batch, id } : null;
}

/**
 * What a scrape asks for, as 22 characters: equal for the same tool, input and server in whatever order the input's
 * keys were written. A known (batch, id) with another digest is a conflict (design A2).
 */
export function digestOf(tool: string, input: Readonly<Record<string, unknown>>, server: string): string {
  return shortHash(canonicalJson([tool, server, input]));
}

/**
 * The id of a file or stdin line that has none: from its canonical content and its count among equal lines (1 for the
 * first), so that the same file gives the same ids again (design A2).
 */
export function derivedId(rawJob: unknown, countAmongEqual: number): string {
  const hash = createHash('sha256').update(canonicalJson(rawJob)).digest('hex').slice(0, 20);
  return countAmongEqual === 1 ? `line-${hash}` : `line-${hash}-${countAmongEqual}`;
}

/** `job` is the data with `id` and `batch` filled in, ready for `parseJob`. */
export type BullIdentity =
  | { readonly ok: true; readonly batch: string; readonly id: string; readonly job: Record<string, unknown> }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Identity of a job that another program added to the `scrape` queue (design A2): the id is BullMQ's `jobId` with a
 * leading `<batch>.` taken off. Ids BullMQ made by itself (`17`, `repeat:…`) get a form that fits the rules, is the
 * same every time, and carries a hash of the whole so that no two meet. A `data.id` that says something else is
 * refused, because BullMQ would deduplicate by one name and Trawl by another.
 */
export function fromBullJob(job: { readonly jobId: string; readonly data: unknown }): BullIdentity {
  if (typeof job.data !== 'object' || job.data === null || Array.isArray(job.data)) {
    return refusal('job', `expected a mapping, found ${describeType(job.data)}`);
  }
  const data = job.data as Record<string, unknown>;
  const given = Object.hasOwn(data, 'batch') ? data.batch : undefined;
  if (given !== undefined && given !== null && !isBatch(given)) {
    return refusal('batch', `expected ${batchSyntax}, found ${quote(given)}`);
  }
  const batch = given ?? defaultBatch;
  const own = job.jobId.startsWith(`${batch}.`) ? job.jobId.slice(batch.length + 1) : job.jobId;
  const id = isId(own) ? own : safeId(own);
  const said = Object.hasOwn(data, 'id') ? data.id : undefined;
  if (said !== undefined && said !== null && said !== id) {
    const advice = isId(said)
      ? `add the job with { jobId: "${jobKey(batch, said)}" } or leave "id" out of its data`
      : 'leave "id" out of the data: the id is the jobId';
    return refusal('id', `${quote(said)} differs from the jobId "${cleanText(job.jobId, 80)}"; ${advice}`);
  }
  return { ok: true, batch, id, job: { ...data, batch, id } };
}

/** An id that fits the rules for a text that does not, stable, and told apart from others by a hash of all of it. */
export function safeId(text: string): string {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const readable = text
    .slice(0, 64)
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return readable === '' ? `job-${hash}` : `job-${readable}-${hash}`;
}

function refusal(field: string, message: string): BullIdentity {
  return { ok: false, problems: [{ field, message }] };
}
