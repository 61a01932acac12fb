import { readdirSync } from 'node:fs';
import { McpError } from '@modelcontextprotocol/sdk/types.js';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { classifyError } from '../../src/mcp/classify.js';
import { type CallResult, type Operation, operations, type RunView } from '../../src/mcp/port.js';
import { type RefusalContext, refineFailure } from '../../src/mcp/profiles/apify-refusals.js';
import {
  readAnswer,
  readPage,
  readRecord,
  readRun,
  readRunList,
  runIdOfProgress,
  type ToolResult,
} from '../../src/mcp/profiles/apify-replies.js';
import { describeTools, isObject, missingHelpers, readTools } from '../../src/mcp/profiles/apify-tools.js';
import { type Json, recorded } from '../mcp/fake-server.js';
import { serverConfig } from '../mcp/setup.js';
import { mustBeFailure, mustBePlain, mustBeRun, mustBeUnpolluted, mustLeadOn } from './classified.js';
import { canary, mutate, mutations } from './hostile.js';
import { replies, seed } from './size.js';

const runId = 'run00000000000001';
const secrets = [canary];
const page = { datasetId: 'dsrun00000000000001', offset: 0, limit: 10, fields: [] };

interface Recording {
  readonly operation: Operation;
  readonly reply: Json;
}

const operationOf: Record<string, Operation> = {
  'get-actor-run': 'poll',
  'get-dataset-items': 'read',
  'get-key-value-store-record': 'record',
  'abort-actor-run': 'abort',
  'get-actor-run-list': 'reconcile',
};

/** Every reply that was recorded at the real server, with the operation it answers. */
const recordings: Recording[] = readdirSync(new URL('../wire/', import.meta.url))
  .filter((name) => name.endsWith('.json'))
  .flatMap((name) => recorded(name.replace('.json', '')))
  .flatMap(({ request, replies: all }) => {
    const name = String((request.params as Json | undefined)?.name);
    const listing = request.method === 'tools/list';
    const operation = listing ? 'list_tools' : (operationOf[name] ?? 'start');
    return all.map((reply) => ({ operation, reply }));
  });

/** As the SDK hands it on: a result, or an error; a reply that is neither never gets so far. */
function judge(reply: Json, operation: Operation, way: 'call-actor' | 'direct'): CallResult<unknown> | null {
  const context: RefusalContext = {
    operation,
    way: operation === 'start' ? way : null,
    secrets,
    asked: operation === 'read' ? page.datasetId : runId,
  };
  const { error, result } = reply;
  if (isObject(error)) {
    // An error of another shape never becomes one: the SDK's schema throws on it.
    const { code, message, data } = error;
    const sound = Number.isSafeInteger(code) && typeof message === 'string';
    const thrown = sound
      ? new McpError(code as number, message, data)
      : Object.assign(new Error('[{"code":"invalid_type"}]'), { name: 'ZodError' });
    const trace = { status: 200, retryAfterMs: null };
    return {
      ok: false,
      failure: refineFailure(classifyError(thrown, { trace, secrets, inSession: true }), context),
    };
  }
  if (isObject(reply.params)) mustBeRunIdOrNull(runIdOfProgress(reply.params));
  if (!isObject(result)) return null;
  const read = readerOf(operation);
  return readAnswer(result, { name: operation, read }, context);
}

function readerOf(operation: Operation): (result: ToolResult) => unknown {
  switch (operation) {
    case 'connect':
    case 'start':
      return (result) => readRun(result, null, secrets);
    case 'poll':
    case 'abort':
      return (result) => readRun(result, runId, secrets);
    case 'read':
      return (result) => readPage(result, page);
    case 'record':
      return (result) => readRecord(result, secrets);
    case 'reconcile':
      return (result) => readRunList(result, { offset: 0 });
    case 'list_tools':
      return (result) => readTools(result);
    default:
      return operation satisfies never;
  }
}

function mustBeRunIdOrNull(id: string | null): void {
  if (id !== null) expect(id).toMatch(/^[\w-]{1,64}$/);
}

function check(result: CallResult<unknown>, operation: Operation): void {
  if (!result.ok) {
    mustBeFailure(result.failure);
    mustLeadOn(result);
    return;
  }
  const { value } = result;
  if (operation === 'start' || operation === 'poll' || operation === 'abort' || operation === 'connect') {
    mustBeRun(value as RunView);
    mustLeadOn(result as CallResult<RunView>);
  }
  if (operation === 'read') {
    const { lines, bytes } = value as NonNullable<ReturnType<typeof readPage>>;
    expect(lines.length).toBeLessThanOrEqual(page.limit);
    for (const line of lines) expect(line.includes('\n')).toBe(false);
    expect(bytes).toBe(lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0));
  }
  if (operation === 'record') {
    const { contentType } = value as NonNullable<ReturnType<typeof readRecord>>;
    mustBePlain(contentType, 250, 'content type');
  }
  if (operation === 'list_tools') {
    const { tools } = value as NonNullable<ReturnType<typeof readTools>>;
    missingHelpers(tools);
    const described = describeTools(serverConfig('http://h/'), tools, { name: 'x', version: '1' });
    for (const name of described.toolNames) mustBePlain(name, 128, 'name of a tool');
    expect(described.waitSecsCap).toBeLessThanOrEqual(3_600);
  }
}

it('there are recordings of every kind to start from', () => {
  expect(recordings.length).toBeGreaterThan(30);
  expect(new Set(recordings.map(({ operation }) => operation))).toEqual(
    new Set(operations.filter((operation) => operation !== 'connect')),
  );
});

it('mutated recordings end classified, and the core goes on from each', { timeout: 120_000 }, () => {
  const ends = new Map<string, number>();
  const generated = fc.record({
    recording: fc.constantFrom(...recordings),
    changes: mutations,
    /** Only the JSON among the texts is left, and is mutated itself. */
    textOnly: fc.boolean(),
    operation: fc.oneof({ arbitrary: fc.constant(null), weight: 4 }, fc.constantFrom(...operations)),
    way: fc.constantFrom('call-actor', 'direct'),
  });
  const property = fc.property(generated, ({ recording, changes, textOnly, operation, way }) => {
    const source = textOnly ? withoutStructure(recording.reply, changes) : mutate(recording.reply, changes);
    if (!isObject(source)) return;
    const op = operation ?? recording.operation;
    const result = judge(source, op, way);
    if (result === null) return;
    const end = result.ok ? 'ok' : `${result.failure.kind} ${result.failure.refusal}`;
    ends.set(end, (ends.get(end) ?? 0) + 1);
    check(result, op);
  });
  fc.assert(property, { numRuns: replies, seed });
  // The mutations must not all end in the same place, or they would test little.
  expect([...ends.keys()]).toEqual(
    expect.arrayContaining(['ok', 'invalid_response none', 'tool_error none', 'protocol_error server']),
  );
});

function withoutStructure(reply: Json, changes: Parameters<typeof mutate>[1]): unknown {
  const copy = structuredClone(reply) as { result?: { structuredContent?: unknown; content?: unknown } };
  const { result } = copy;
  if (result?.structuredContent === undefined || !Array.isArray(result.content)) return mutate(copy, changes);
  const text = JSON.stringify(mutate(result.structuredContent, changes)) ?? '';
  const [, ...rest] = result.content as unknown[];
  return {
    ...copy,
    result: { ...result, structuredContent: undefined, content: [{ type: 'text', text }, ...rest] },
  };
}

afterAll(mustBeUnpolluted);
