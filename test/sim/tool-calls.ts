import { type Reply, rpcError, toolError } from './answer.js';
import { missingArguments, unknownTool } from './arguments.js';
import type { Call } from './call.js';
import { actorNotFoundTexts, callErrorText, deadTokenSentence } from './refusals.js';
import { abortAnswer, runAnswer } from './run-answer.js';
import { aliasAt, type DatasetView, parseStorageId, type Run, statusOf, viewDataset } from './runs.js';
import { defaultWait, invalidParams, observe, startRun } from './start-run.js';
import type { SimOperation } from './steering.js';
import {
  datasetAnswer,
  type ItemArguments,
  itemsAnswer,
  logAnswer,
  recordReply,
  runListAnswer,
} from './storage-answer.js';
import { visibleTools } from './toolset.js';

type Args = Record<string, unknown>;

/** What a tool is on the product's side of the wire. */
export function operationOf(call: Call): SimOperation {
  if (call.name === 'call-actor' || call.owner.toolset.get(call.name)) return 'start';
  switch (call.name) {
    case 'get-actor-run':
      return 'poll';
    case 'get-dataset-items':
      return 'read';
    case 'get-key-value-store-record':
      return 'record';
    case 'abort-actor-run':
      return 'abort';
    case 'get-actor-run-list':
      return 'reconcile';
    default:
      return 'other';
  }
}

/** Carries out a tools/call: unknown tools and arguments that do not fit are -32602, the rest is the tool's own. */
export async function callTool(call: Call, args: unknown, tokenIsDead: boolean): Promise<Reply> {
  const { world, owner, name } = call;
  const visible = visibleTools(owner.toolset, world.conditions, tokenIsDead);
  if (!visible.includes(name)) return rpcError(-32602, unknownTool(name.slice(0, 200), visible));
  if (typeof args !== 'object' || args === null || Array.isArray(args)) {
    return rpcError(-32602, missingArguments(name));
  }
  const given = args as Args;
  const errors = world.checks.check(name, owner.toolset.get(name) ?? null, given, world.conditions);
  if (errors !== null) return invalidParams(name, errors);
  if (tokenIsDead) return deadToken(call, given);
  switch (call.op) {
    case 'start':
      return startRun(call, given);
    case 'poll':
      return poll(call, given);
    case 'read':
      return read(call, given);
    case 'record':
      return record(call, given);
    case 'abort':
      return abort(call, given);
    case 'reconcile':
      return list(call, given);
    default:
      return name === 'get-dataset' ? dataset(call, given) : log(call, given);
  }
}

/** How a token that the API no longer accepts surfaces in each tool (poll-401.json). */
export function deadToken(call: Call, args: Args): Reply {
  if (call.op === 'poll') {
    return toolError([
      `Failed to get Actor run '${String(args.runId)}': ${deadTokenSentence}.\nPlease verify the run ID and ensure that the run exists.`,
    ]);
  }
  if (call.name === 'call-actor') {
    const actor = String(args.actor);
    if (call.world.conditions.authMode === 'not_found') return toolError(actorNotFoundTexts(actor));
    return toolError([
      `Failed to call Actor '${actor}': ${deadTokenSentence}`,
      'Please verify the Actor name, input parameters, and ensure the Actor exists.',
    ]);
  }
  const sentence = `${deadTokenSentence} (API error type: user-or-token-not-found)`;
  return toolError([callErrorText(call.name, sentence, 401)], 'SOFT_FAIL');
}

async function poll(call: Call, args: Args): Promise<Reply> {
  const runId = String(args.runId);
  const run = call.world.runs.get(runId);
  if (run === undefined) return toolError([`Run with ID '${runId}' not found.`]);
  await observe(call, run, typeof args.waitSecs === 'number' ? args.waitSecs : defaultWait(call));
  if (call.cancelled) return { kind: 'nothing' };
  const now = call.world.now();
  call.world.note('poll', call, { runId, status: statusOf(run, now) });
  return { kind: 'answer', answer: runAnswer(run, now) };
}

function findDataset(call: Call, id: string): { run: Run; view: DatasetView } | null {
  const { runId, index } = parseStorageId(id);
  const run = call.world.runs.get(runId);
  const alias = run === undefined ? null : aliasAt(run, index);
  const view = run === undefined || alias === null ? null : viewDataset(run, alias, call.world.now());
  return run === undefined || view === null || view.id !== id ? null : { run, view };
}

function read(call: Call, args: Args): Reply {
  const wanted = args as unknown as ItemArguments;
  const found = findDataset(call, wanted.datasetId);
  const offset = wanted.offset ?? 0;
  if (offset < 0) {
    const sentence = `Expected property number \`offset\` to not be negative, got ${offset} in object \`options\``;
    return toolError([callErrorText(call.name, sentence, 400)], 'FAILED');
  }
  if (found === null) return toolError([`Dataset '${wanted.datasetId}' not found.`]);
  const { answer, count } = itemsAnswer(found.run, found.view, wanted, call.owner.toolset.has('get-dataset'));
  call.world.note('read', call, {
    runId: found.run.id,
    dataset: wanted.datasetId,
    offset,
    limit: wanted.limit ?? 20,
    count,
  });
  return { kind: 'answer', answer };
}

function dataset(call: Call, args: Args): Reply {
  const id = String(args.datasetId);
  const found = findDataset(call, id);
  if (found === null) return toolError([`Dataset '${id}' not found.`]);
  return { kind: 'answer', answer: datasetAnswer(found.run, found.view, call.world.now()) };
}

function record(call: Call, args: Args): Reply {
  const storeId = String(args.keyValueStoreId);
  const key = String(args.recordKey);
  const run = storeId.startsWith('kv') ? call.world.runs.get(storeId.slice(2)) : undefined;
  if (run === undefined) return toolError([`Key-value store '${storeId}' not found.`]);
  call.world.note('record', call, { runId: run.id, key });
  return recordReply(run, key);
}

function abort(call: Call, args: Args): Reply {
  const run = call.world.runs.get(String(args.runId));
  if (run === undefined) {
    const sentence = 'Actor run was not found (API error type: record-not-found)';
    return toolError([callErrorText(call.name, sentence, 404)], 'SOFT_FAIL');
  }
  call.world.abort(run, args.gracefully === true, call, 'abort');
  return { kind: 'answer', answer: abortAnswer(run, call.world.now()) };
}

function list(call: Call, args: Args): Reply {
  const offset = typeof args.offset === 'number' ? Math.floor(args.offset) : 0;
  const limit = typeof args.limit === 'number' ? Math.floor(args.limit) : 10;
  if (offset < 0 || limit < 0) {
    const wrong =
      offset < 0
        ? `\`offset\` to not be negative, got ${offset}`
        : `\`limit\` to not be negative, got ${limit}`;
    return toolError(
      [callErrorText(call.name, `Expected property number ${wrong} in object \`options\``, 400)],
      'FAILED',
    );
  }
  const now = call.world.now();
  const desc = args.desc === true;
  const status = typeof args.status === 'string' ? args.status : null;
  const page = call.world.runs.list({ offset, limit, desc, status }, now);
  call.world.note('list', call, { offset, limit, count: page.runs.length });
  return { kind: 'answer', answer: runListAnswer(page, { offset, limit, desc }, now) };
}

function log(call: Call, args: Args): Reply {
  const run = call.world.runs.get(String(args.runId));
  if (run === undefined) return toolError([`Run with ID '${String(args.runId)}' not found.`]);
  const lines = typeof args.lines === 'number' ? args.lines : 10;
  return { kind: 'answer', answer: logAnswer(run, lines, call.world.now()) };
}
