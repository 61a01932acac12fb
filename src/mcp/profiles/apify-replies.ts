import { canonicalTool } from '../../scrape/tool-name.js';
import { makeFailure } from '../classify.js';
import { cleanMessage } from '../message.js';
import {
  type CallResult,
  finalStatuses,
  type PageRequest,
  type PageView,
  type RecordView,
  type RunListing,
  type RunView,
} from '../port.js';
import { classifyToolError, type RefusalContext } from './apify-refusals.js';
import { isObject } from './apify-tools.js';

/** A tool's result; `null` from a reader of this file means that the shape is wrong. */
export type ToolResult = Record<string, unknown>;

const actorRunMeta = 'com.apify/ActorRun';
/** Apify's ids are 17 letters and digits; others that are safe in keys, logs and arguments are let through. */
const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const statuses = 'READY|RUNNING|TIMING-OUT|ABORTING|SUCCEEDED|FAILED|TIMED-OUT|ABORTED';

/** An id from outside when it is plausible, else null. A token in the place of an id would be kept and shown as one. */
function plausibleId(value: unknown): string | null {
  return typeof value === 'string' && idPattern.test(value) && !value.includes('apify_api_') ? value : null;
}

/** A status from outside when it is plausible, else `UNKNOWN`. */
function plausibleStatus(value: unknown): string {
  return typeof value === 'string' && /^[A-Z][A-Z-]{1,31}$/.test(value) ? value : 'UNKNOWN';
}

export function isFinal(status: string): boolean {
  return (finalStatuses as readonly string[]).includes(status);
}

/** The text blocks of a result, in order. */
export function textsOf(result: ToolResult): string[] {
  if (!Array.isArray(result.content)) return [];
  return (result.content as unknown[]).flatMap((block) =>
    isObject(block) && block.type === 'text' && typeof block.text === 'string' ? [block.text] : [],
  );
}

/** A result that is none: a task was made instead (both SDK lines pass it on as an empty result). */
function isTask(result: ToolResult): boolean {
  return result.resultType === 'task' || (isObject(result.task) && result.content === undefined);
}

/**
 * A result of the tool `name` as `read` understands it, or whose fault it is that it does not; never throws, whatever
 * `read` (a reader of this file) does with data that no reader can hold.
 */
export function readAnswer<T>(
  answer: ToolResult,
  { name, read }: { readonly name: string; readonly read: (result: ToolResult) => T | null },
  context: RefusalContext,
): CallResult<T> {
  if (answer.isError === true) return { ok: false, failure: classifyToolError(textsOf(answer), context) };
  const wrong = (why: string): CallResult<T> => ({
    ok: false,
    failure: makeFailure('invalid_response', `The answer of ${name} ${why}.`, context.secrets),
  });
  if (isTask(answer)) return wrong('is a task and not a result');
  try {
    const value = read(answer);
    return value === null ? wrong('does not have the shape it should') : { ok: true, value };
  } catch {
    return wrong('cannot be read');
  }
}

/** The object of a result: structuredContent, else the JSON among the texts, which is read only then. */
function structuredOf(result: ToolResult): Record<string, unknown> | null {
  if (isObject(result.structuredContent)) return result.structuredContent;
  for (const text of textsOf(result)) {
    const json = text.replace(/^\s*```json\s*|\s*```\s*$/g, '');
    if (!json.startsWith('{')) continue;
    try {
      const parsed: unknown = JSON.parse(json);
      if (isObject(parsed)) return parsed;
    } catch {
      // Not this block; the sentence may still say enough.
    }
  }
  return null;
}

/**
 * The run a result is about: from its object, else from the sentence. `expected` is the run that was asked for; an
 * answer about another one is a wrong shape. null: no run id in it.
 */
export function readRun(
  result: ToolResult,
  expected: string | null,
  secrets: readonly string[],
): RunView | null {
  const data = structuredOf(result);
  const run = data
    ? runFromObject(data, expected, secrets)
    : runFromSentence(textsOf(result).join('\n'), expected);
  if (!run || (expected !== null && run.runId !== expected)) return null;
  return { ...run, usageUsd: usageOf(result) };
}

function runFromObject(
  data: Record<string, unknown>,
  expected: string | null,
  secrets: readonly string[],
): RunView | null {
  const runId = data.runId === undefined ? expected : plausibleId(data.runId);
  if (runId === null || (data.runId === undefined && data.status === undefined)) return null;
  const status = plausibleStatus(data.status);
  const storages = isObject(data.storages) ? data.storages : {};
  const datasets = isObject(storages.datasets) ? storages.datasets : {};
  const stores = isObject(storages.keyValueStores) ? storages.keyValueStores : {};
  const dataset = isObject(datasets.default) ? datasets.default : {};
  const store = isObject(stores.default) ? stores.default : {};
  const actor = typeof data.actorName === 'string' ? canonicalTool(data.actorName) : null;
  return {
    runId,
    ...(actor === null ? {} : { actor }),
    status,
    final: isFinal(status),
    statusMessage: cleanMessage(data.statusMessage, secrets) || null,
    startedAtMs: timeOf(data.startedAt),
    finishedAtMs: timeOf(data.finishedAt),
    datasetId: plausibleId(dataset.id),
    itemCount: countOf(dataset.itemCount),
    storeId: plausibleId(store.id),
    recordKeys: recordKeysOf(store.keys, secrets),
    otherDatasets: otherDatasetsOf(datasets, secrets),
    usageUsd: null,
  };
}

/**
 * The last resort when a proxy leaves the sentence alone: `RUNNING for 30s. In progress. 23 results so far.` and
 * `Use get-actor-run with runId=… …`. What an Actor says in its quoted status message is cut out before anything but the status is
 * read.
 */
function runFromSentence(text: string, expected: string | null): RunView | null {
  const head = text.slice(0, 4_000);
  const status = new RegExp(`(?:^|\\n)\\s*(${statuses})\\b(?!-)`).exec(head)?.[1];
  if (status === undefined) return null;
  const [before = '', ...rest] = head.split('Actor status: "');
  const own = rest.length === 0 ? before : `${before}\n${head.slice(head.lastIndexOf('\n') + 1)}`;
  const named =
    /\brunId=([A-Za-z0-9_-]{1,64})/.exec(own) ?? /\bRun ([A-Za-z0-9_-]{5,64}) was created\b/.exec(own);
  const runId = plausibleId(named?.[1]) ?? expected;
  if (runId === null) return null;
  const count =
    /\b(\d{1,15}) (?:items?|results?)\b/.exec(own) ??
    /\bitem count reads (\d{1,15})\b/.exec(own) ??
    /\((\d{1,15}) total\)/.exec(own);
  return {
    runId,
    status,
    final: isFinal(status),
    statusMessage: null,
    startedAtMs: null,
    finishedAtMs: null,
    datasetId: plausibleId(/\bdatasetId=([A-Za-z0-9_-]{1,64})/.exec(own)?.[1]),
    itemCount: count ? countOf(Number(count[1])) : null,
    storeId: null,
    recordKeys: [],
    otherDatasets: [],
    usageUsd: null,
  };
}

/** One page of a dataset. Offset and limit have to come back as they were sent: they number the items. */
export function readPage(result: ToolResult, request: PageRequest): PageView | null {
  const data = structuredOf(result);
  if (!data || !Array.isArray(data.items)) return null;
  const items = data.items as unknown[];
  const { offset, limit, itemCount, datasetId } = data;
  if (items.length > request.limit || (itemCount !== undefined && itemCount !== items.length)) return null;
  if (offset !== undefined && offset !== request.offset) return null;
  if (limit !== undefined && limit !== request.limit) return null;
  if (datasetId !== undefined && datasetId !== request.datasetId) return null;
  const lines: string[] = [];
  let bytes = 0;
  for (const item of items) {
    // JSON.stringify writes no line break; it throws on nesting that is too deep, which the caller answers for.
    const line = JSON.stringify(item);
    bytes += Buffer.byteLength(line) + 1;
    lines.push(line);
  }
  return { lines, totalItemCount: countOf(data.totalItemCount), bytes };
}

/** One record: a binary block, a link, or the value in the object. */
export function readRecord(result: ToolResult, secrets: readonly string[]): RecordView | null {
  const blocks = Array.isArray(result.content) ? (result.content as unknown[]) : [];
  for (const block of blocks) {
    if (!isObject(block)) continue;
    if (block.type === 'image' || block.type === 'audio') return binaryRecord(block.data, block.mimeType);
    if (block.type === 'resource_link') {
      const uri = cleanMessage(block.uri, secrets, 2_000);
      return uri === '' ? null : { kind: 'link', contentType: contentTypeOf(block.mimeType), uri };
    }
    if (block.type === 'resource' && isObject(block.resource)) {
      const { blob, text, mimeType } = block.resource;
      if (blob !== undefined) return binaryRecord(blob, mimeType);
      if (typeof text === 'string') return textRecord(text, contentTypeOf(mimeType, 'text/plain'));
    }
  }
  const data = structuredOf(result);
  if (!data || data.value === undefined) return null;
  const { value } = data;
  const isJson = /\bjson\b/i.test(String(data.contentType ?? ''));
  if (typeof value === 'string' && !isJson) {
    // The placeholder of a binary record whose block was stripped on the way is not its content.
    if (/^<binary [^>]{1,200}>$/.test(value)) return null;
    return textRecord(value, contentTypeOf(data.contentType, 'text/plain'));
  }
  const contentType = contentTypeOf(data.contentType, 'application/json');
  return { kind: 'json', contentType, body: Buffer.from(JSON.stringify(value)) };
}

/** The runs of the account, newest first. An order the server did not keep is a wrong shape unless it listed all. */
export function readRunList(result: ToolResult, request: { offset: number }): RunListing | null {
  const data = structuredOf(result);
  if (!data || !Array.isArray(data.items)) return null;
  const total = countOf(data.total);
  const items = data.items as unknown[];
  const all = total !== null && request.offset === 0 && items.length >= total;
  if (data.desc === false && !all) return null;
  const runs = items.flatMap((item) => {
    if (!isObject(item)) return [];
    const runId = plausibleId(item.id);
    if (runId === null) return [];
    const origin = isObject(item.meta) ? item.meta.origin : undefined;
    return [
      {
        runId,
        actorId: plausibleId(item.actId),
        status: plausibleStatus(item.status),
        startedAtMs: timeOf(item.startedAt),
        origin: typeof origin === 'string' && /^[\w-]{1,32}$/.test(origin) ? origin : null,
        storeId: plausibleId(item.defaultKeyValueStoreId),
        datasetId: plausibleId(item.defaultDatasetId),
      },
    ];
  });
  runs.sort((a, b) => (b.startedAtMs ?? 0) - (a.startedAtMs ?? 0));
  return { total, runs };
}

/** The run id a progress notification carries, or null. */
export function runIdOfProgress(params: Record<string, unknown>): string | null {
  const meta = isObject(params._meta) ? params._meta[actorRunMeta] : undefined;
  return isObject(meta) ? plausibleId(meta.runId) : null;
}

/** US dollars. More than this is no bill, and sums of it would stop being numbers. */
const largestUsage = 1e9;

function usageOf(result: ToolResult): number | null {
  const meta = isObject(result._meta) ? result._meta[actorRunMeta] : undefined;
  const usd = isObject(meta) ? meta.usageTotalUsd : undefined;
  return typeof usd === 'number' && usd >= 0 && usd <= largestUsage ? usd : null;
}

function countOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

function timeOf(value: unknown): number | null {
  if (typeof value !== 'string' || value.length > 40) return null;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? null : ms;
}

function recordKeysOf(keys: unknown, secrets: readonly string[]): string[] {
  if (!Array.isArray(keys)) return [];
  return (keys as unknown[])
    .filter((key) => typeof key === 'string' && key !== '' && key.length <= 256 && key !== 'INPUT')
    .slice(0, 200)
    .map((key) => cleanMessage(key, secrets, 256))
    .filter((key) => key !== '');
}

function otherDatasetsOf(
  datasets: Record<string, unknown>,
  secrets: readonly string[],
): RunView['otherDatasets'] {
  const others: { name: string; id: string; itemCount: number }[] = [];
  for (const [alias, value] of Object.entries(datasets)) {
    if (alias === 'default' || !isObject(value) || others.length >= 50) continue;
    const id = plausibleId(value.id);
    const itemCount = countOf(value.itemCount);
    if (id !== null && itemCount !== null && itemCount > 0) {
      others.push({ name: cleanMessage(alias, secrets, 100), id, itemCount });
    }
  }
  return others;
}

function contentTypeOf(value: unknown, otherwise = 'application/octet-stream'): string {
  return typeof value === 'string' && /^[\w.+/-]{1,100}(;[\w ."=;+/-]{0,100})?$/.test(value)
    ? value
    : otherwise;
}

function textRecord(text: string, contentType: string): RecordView {
  return { kind: 'text', contentType, body: Buffer.from(text) };
}

function binaryRecord(data: unknown, mimeType: unknown): RecordView | null {
  if (typeof data !== 'string' || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(data)) return null;
  return { kind: 'binary', contentType: contentTypeOf(mimeType), body: Buffer.from(data, 'base64') };
}
