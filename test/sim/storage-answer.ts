import type { Input } from './actors/actor.js';
import { type Reply, type ToolAnswer, toolError } from './answer.js';
import { readItems } from './items.js';
import { exitCodeOf, statsOf } from './run-answer.js';
import {
  type DatasetView,
  isFinal,
  itemSource,
  type Run,
  recordKeys,
  shapeOf,
  statusOf,
  storeIdOf,
  usageOf,
} from './runs.js';

export interface ItemArguments {
  readonly datasetId: string;
  readonly offset?: number;
  readonly limit?: number;
  readonly clean?: boolean;
  readonly desc?: boolean;
  readonly fields?: string;
  readonly omit?: string;
  readonly flatten?: string;
}

const names = (list: string | undefined): string[] =>
  (list ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** items-*.json: the items travel twice, in `structuredContent` and as text. */
export function itemsAnswer(
  run: Run,
  view: DatasetView,
  args: ItemArguments,
  hasGetDataset: boolean,
): { readonly answer: ToolAnswer; readonly count: number } {
  const offset = args.offset ?? 0;
  const limit = args.limit ?? 20;
  const items = readItems(itemSource(run, view.alias), view.readable, {
    offset,
    limit,
    desc: args.desc ?? false,
    clean: args.clean ?? false,
    fields: names(args.fields),
    omit: names(args.omit),
    flatten: names(args.flatten),
  });
  const count = items.length;
  const body = `"datasetId":${JSON.stringify(args.datasetId)},"items":[${items.join(',')}],"itemCount":${count},"totalItemCount":${view.total},"offset":${offset},"limit":${limit}`;
  const { summary, nextStep } = pageSentences(args.datasetId, count, view.total, offset, hasGetDataset);
  const answer = {
    isError: false,
    mirror: `{${body}}`,
    structured: `{${body},"summary":${JSON.stringify(summary)},"nextStep":${JSON.stringify(nextStep)}}`,
    texts: [`${summary}\n${nextStep}`],
  };
  return { answer, count };
}

function pageSentences(
  datasetId: string,
  count: number,
  total: number,
  offset: number,
  hasGetDataset: boolean,
) {
  if (offset + count < total) {
    return {
      summary: `Fetched ${count} of ${total} items (offset=${offset}).`,
      nextStep: `Call get-dataset-items again with offset=${offset + count} to fetch the next page.`,
    };
  }
  return {
    summary:
      offset === 0 && count === total
        ? `Fetched all ${count} items.`
        : `Fetched ${count} of ${total} items (offset=${offset}); no more pages.`,
    nextStep: hasGetDataset
      ? `Use get-dataset with datasetId=${datasetId} to see the field list if you need the data structure.`
      : 'No more pages. Inspect the returned items directly.',
  };
}

export function datasetAnswer(run: Run, view: DatasetView, now: number): ToolAnswer {
  const fields = shapeOf(run).fields;
  const started = new Date(run.startedAt).toISOString();
  const metadata = {
    id: view.id,
    name: null,
    userId: 'usr1',
    createdAt: started,
    modifiedAt: new Date(Math.min(now, run.endAt)).toISOString(),
    accessedAt: started,
    itemCount: view.total,
    cleanItemCount: view.total,
    actId: run.actor.id,
    actRunId: run.id,
    ...(view.total > 0 ? { fields } : {}),
  };
  const summary = `Dataset '${view.id}' has ${view.total} items${view.total > 0 ? `, ${fields.length} fields` : ''}.`;
  const nextStep = `Use get-dataset-items with datasetId=${view.id} and limit (for example 20) to fetch items.`;
  return {
    isError: false,
    mirror: JSON.stringify(metadata),
    structured: JSON.stringify({ ...metadata, summary, nextStep }),
    texts: [`${summary}\n${nextStep}`],
  };
}

/** Up to this size a binary record is inlined, above it comes as a link. */
const inlineBytes = 256 * 1024;

/** record-*.json. A record is JSON, a text (a string), or `{contentType, base64 | bytes | text}`. */
export function recordReply(run: Run, key: string): Reply {
  const storeId = storeIdOf(run);
  if (key === 'INPUT') {
    return valueReply(
      storeId,
      key,
      JSON.parse(run.input) as unknown,
      'application/json; charset=utf-8',
      run.input,
    );
  }
  if (!Object.hasOwn(run.plan.records, key)) {
    return toolError([`Record '${key}' not found in key-value store '${storeId}'.`]);
  }
  const value = run.plan.records[key];
  if (typeof value === 'string') return valueReply(storeId, key, value, 'text/plain; charset=utf-8', value);
  const wanted = typeof value === 'object' && value !== null ? (value as Input) : {};
  if (typeof wanted.contentType !== 'string') {
    return valueReply(storeId, key, value, 'application/json', JSON.stringify(value));
  }
  const contentType = wanted.contentType.slice(0, 200);
  if (typeof wanted.text === 'string') return valueReply(storeId, key, wanted.text, contentType, wanted.text);
  return binaryReply(storeId, key, contentType, bodyOf(wanted));
}

function bodyOf(wanted: Input): Buffer {
  if (typeof wanted.base64 === 'string') return Buffer.from(wanted.base64, 'base64');
  const bytes = typeof wanted.bytes === 'number' ? Math.min(Math.max(0, wanted.bytes), 64 * 1024 * 1024) : 0;
  return Buffer.alloc(bytes, 0xa5);
}

function valueReply(storeId: string, key: string, value: unknown, contentType: string, body: string): Reply {
  const summary = `Read '${key}' (contentType=${contentType}, ${Buffer.byteLength(body)} bytes).`;
  const shown = { keyValueStoreId: storeId, key, value, contentType };
  return {
    kind: 'answer',
    answer: {
      isError: false,
      mirror: JSON.stringify(shown),
      structured: JSON.stringify({ ...shown, summary }),
      texts: [summary],
    },
  };
}

function binaryReply(storeId: string, key: string, contentType: string, body: Buffer): Reply {
  const mimeType = contentType.split(';')[0]?.trim().toLowerCase() ?? contentType;
  const uri = `https://api.apify.com/v2/key-value-stores/${storeId}/records/${encodeURIComponent(key)}`;
  const structured = JSON.stringify({
    keyValueStoreId: storeId,
    key,
    value: `<binary ${mimeType}, ${body.length} bytes>`,
    contentType,
    summary: `Read '${key}' (contentType=${contentType}, ${body.length} bytes).`,
  });
  return { kind: 'answer', answer: { structured, texts: [], blocks: [JSON.stringify(block())] } };

  function block(): object {
    if (body.length > inlineBytes) {
      return { type: 'resource_link', uri, name: key, size: body.length, mimeType };
    }
    const data = body.toString('base64');
    if (mimeType.startsWith('image/')) return { type: 'image', data, mimeType };
    if (mimeType.startsWith('audio/')) return { type: 'audio', data, mimeType };
    return { type: 'resource', resource: { uri, blob: data, mimeType } };
  }
}

/** run-list.json: the API's rows as they are, in one text block and `structuredContent`, without `isError`. */
export function runListAnswer(
  page: { readonly total: number; readonly runs: readonly Run[] },
  query: { readonly offset: number; readonly limit: number; readonly desc: boolean },
  now: number,
): ToolAnswer {
  const json = JSON.stringify({
    total: page.total,
    offset: query.offset,
    limit: query.limit,
    desc: query.desc,
    count: page.runs.length,
    items: page.runs.map((run) => runRow(run, now)),
  });
  return { mirror: json, structured: json, texts: [] };
}

function runRow(run: Run, now: number): object {
  const final = isFinal(run, now);
  const stats = statsOf(run, now);
  const usage = usageOf(run, now);
  return {
    id: run.id,
    actId: run.actor.id,
    userId: 'usr1',
    startedAt: new Date(run.startedAt).toISOString(),
    finishedAt: final ? new Date(run.endAt).toISOString() : null,
    status: statusOf(run, now),
    statusMessage: run.statusMessage,
    isStatusMessageTerminal: final,
    meta: { origin: 'MCP' },
    stats: { ...stats, restartCount: 0 },
    options: {
      build: run.options.build ?? 'latest',
      timeoutSecs: run.options.timeout ?? 3600,
      memoryMbytes: run.memoryMb,
      diskMbytes: run.memoryMb * 2,
    },
    buildId: 'bld1',
    exitCode: final ? exitCodeOf(run) : null,
    defaultKeyValueStoreId: storeIdOf(run),
    defaultDatasetId: `ds${run.id}`,
    defaultRequestQueueId: `rq${run.id}`,
    buildNumber: '0.0.1',
    containerUrl: 'http://x',
    usage: { ACTOR_COMPUTE_UNITS: stats.computeUnits },
    ...(usage === null ? {} : { usageTotalUsd: usage, usageUsd: { ACTOR_COMPUTE_UNITS: usage } }),
  };
}

/** A log as an Actor writes one; `lines` 0: all of it. */
export function logAnswer(run: Run, lines: number, now: number): ToolAnswer {
  const at = (ms: number) => new Date(ms).toISOString();
  const log = [
    `${at(run.startedAt)} ACTOR: Pulling container image.`,
    `${at(run.startedAt)} ACTOR: Starting.`,
  ];
  if (run.statusMessage !== null) log.push(`${at(Math.min(now, run.endAt))} INFO ${run.statusMessage}`);
  if (isFinal(run, now))
    log.push(`${at(run.endAt)} ACTOR: ${statusOf(run, now)}, records: ${recordKeys(run).length}.`);
  const text = log.slice(-lines).join('\n');
  return { isError: false, structured: JSON.stringify({ log: text }), texts: [text] };
}
