import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ScrapeServer } from '../../src/mcp/port.js';
import { type FakeServer, type Json, recorded, recordedTools, resultOf, startFake } from './fake-server.js';
import { actor, failureOf, okOf, serverConfig, setup, token } from './setup.js';

const run1 = 'run00000000000001';
const start = { tool: actor, input: { location: 'x' }, options: {}, runTimeoutMs: 60_001, timeoutMs: 15_000 };

let fake: FakeServer;
let server: ScrapeServer;
const toolConfig = (name: string, memory: number | null = null) => ({
  [name]: { name, deadlineMs: null, memory, minItems: null, price: null },
});
const use = (...args: Parameters<typeof setup> extends [string, ...infer Rest] ? Rest : never) => {
  const made = setup(fake.url, ...args);
  server = made.server;
  return made;
};
const lastCall = () => fake.seen.at(-1)?.message?.params as { name: string; arguments: Json };
const lastArguments = () => lastCall().arguments;

beforeEach(async () => {
  fake = await startFake();
  fake.onCall = (exchange) => exchange.result(resultOf('start-call-actor-wait0'));
});
afterEach(async () => {
  await server.close();
  await fake.close();
});

describe('describe', () => {
  it('reads what the server shows', async () => {
    use();
    const described = okOf(await server.describe());
    expect(described).toMatchObject({
      serverName: 'apify-mcp-server',
      serverVersion: '0.16.0',
      missing: [],
      via: 'call-actor',
      waitSecsCap: 45,
      canList: true,
    });
    const tool = described.tools.get(actor);
    expect(tool?.toolName).toBe('acme--yellowpages-scraper');
    expect(tool?.inputSchema).toHaveProperty('properties.searchKeyword');
    expect(tool?.inputSchema).not.toHaveProperty('properties.waitSecs');
  });

  it('lists once for all who ask, again for a new session, and when asked to', async () => {
    use();
    await Promise.all([server.describe(), server.describe(), server.start(start)]);
    expect(fake.count('tools/list')).toBe(1);
    await server.describe({ fresh: true });
    expect(fake.count('tools/list')).toBe(2);
    fake.session = 'session-2';
    await server.start(start);
    await server.describe();
    expect(fake.count('tools/list')).toBe(3);
  });

  it('follows pages, and not for ever', async () => {
    const tools = recordedTools();
    fake.onList = (exchange) => {
      const at = Number(exchange.message.params?.cursor ?? 0);
      exchange.result({
        tools: [tools[at]],
        ...(at + 1 < tools.length ? { nextCursor: String(at + 1) } : {}),
      });
    };
    use();
    expect(okOf(await server.describe()).toolNames).toHaveLength(tools.length);
    fake.onList = (exchange) => exchange.result({ tools: Array(20_000).fill({ name: 'x' }) });
    expect(failureOf(await server.describe({ fresh: true })).kind).toBe('invalid_response');
    fake.onList = (exchange) => exchange.result({ tools, nextCursor: 'again' });
    expect(failureOf(await server.describe({ fresh: true })).kind).toBe('invalid_response');
  });

  it.each([
    {
      name: 'an empty list',
      tools: [],
      message: /an empty list of tools for acme\/yellowpages-scraper.*servers\.apify\.tools/,
    },
    { name: 'helpers alone', tools: recordedTools().slice(1), message: /none of the allowed Actors/ },
    {
      name: 'a missing helper',
      tools: recordedTools().filter(({ name }) => name !== 'get-dataset-items'),
      message: /does not show get-dataset-items/,
    },
  ])('$name holds the server', async ({ tools, message }) => {
    fake.onList = (exchange) => exchange.result({ tools });
    use();
    const expected = { refusal: 'server', holdReason: 'tools_missing', noEffect: true };
    expect(failureOf(await server.describe())).toMatchObject({
      ...expected,
      message: expect.stringMatching(message),
    });
    expect(failureOf(await server.start(start))).toMatchObject(expected);
    // Not remembered: the next look may find them.
    fake.onList = (exchange) => exchange.result({ tools: recordedTools() });
    expect(okOf(await server.start(start)).runId).toBe('run00000000000007');
  });

  it.each([
    'nothing',
    7,
    { tools: 'none' },
    { tools: [null, 7, { name: 'a\nb' }, { name: 'x'.repeat(300) }] },
  ])('a list that is none (%j) is a failure', async (result) => {
    fake.onList = (exchange) =>
      exchange.result((typeof result === 'object' ? result : { tools: result }) as Json);
    use();
    expect(['invalid_response', 'tool_error']).toContain(failureOf(await server.describe()).kind);
  });

  it('names allowed Actors that are missing, and looks again soon', async () => {
    use({
      config: { tools: { ...serverConfig('http://x').tools, ...toolConfig('acme/new') } },
      tuning: { missingFreshMs: 0 },
    });
    expect(okOf(await server.describe()).missing).toEqual(['acme/new']);
    expect(failureOf(await server.start({ ...start, tool: 'acme/new' }))).toMatchObject({
      refusal: 'tool',
      holdReason: 'tools_missing',
      noEffect: true,
    });
    fake.onList = (exchange) => exchange.result({ tools: [...recordedTools(), { name: 'acme--new' }] });
    expect(okOf(await server.start({ ...start, tool: 'acme/new' })).status).toBe('READY');
  });

  it('looks through a new session for what a session did not have from its beginning', async () => {
    const actors = { ...serverConfig('http://x').tools, ...toolConfig('acme/new') };
    use({ config: { tools: actors }, tuning: { missingFreshMs: 0 } });
    const withNew = [...recordedTools(), { name: 'acme--new' }];
    let published = false;
    let ofSession: object[] = [];
    const { onInitialize } = fake;
    fake.onInitialize = (exchange) => {
      ofSession = published ? withNew : recordedTools();
      onInitialize(exchange);
    };
    fake.onList = (exchange) => exchange.result({ tools: ofSession });
    expect(okOf(await server.describe()).missing).toEqual(['acme/new']);
    published = true;
    expect(okOf(await server.describe({ fresh: true })).missing).toEqual([]);
    expect(okOf(await server.describe({ fresh: true })).missing).toEqual([]);
    expect(fake.count('initialize')).toBe(2);
  });

  it.each([
    { name: 'first.last/some-actor', toolName: 'first-dot-last--some-actor', title: null },
    {
      name: `acme/${'long-name-'.repeat(7)}`,
      toolName: 'acme--long-name-long-name-long-name-long-name-long-name-lon-',
      title: null,
    },
    { name: 'acme/renamed', toolName: 'acme_renamed_v2', title: 'acme/renamed' },
  ])('finds the tool of $name', async ({ name, toolName, title }) => {
    const shown = toolName.endsWith('-') ? `${toolName}${await hashOf(name)}` : toolName;
    fake.onList = (exchange) => exchange.result({ tools: [...recordedTools(), { name: shown, title }] });
    use({ config: { tools: toolConfig(name) } });
    expect(okOf(await server.describe()).tools.get(name)?.toolName).toBe(shown);
  });
});

async function hashOf(name: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', Buffer.from(name));
  return Buffer.from(digest).toString('hex').slice(0, 4);
}

describe('start', () => {
  it('goes through call-actor with waitSecs 0 and the run options', async () => {
    use();
    const options = { maxItems: 5, maxTotalChargeUsd: 0.5, memory: 256, build: 'latest', timeoutMs: 5 };
    okOf(await server.start({ ...start, options }));
    expect(lastArguments()).toEqual({
      actor,
      input: { location: 'x' },
      waitSecs: 0,
      callOptions: { timeout: 61, maxItems: 5, maxTotalChargeUsd: 0.5, memory: 256, build: 'latest' },
    });
  });

  it("uses the tool's configured memory unless the scrape names its own", async () => {
    use({ config: { tools: toolConfig(actor, 1_024) } });
    okOf(await server.start(start));
    expect(lastArguments().callOptions).toEqual({ timeout: 61, memory: 1_024 });
  });

  it.each([
    { name: 'configured', via: 'direct' as const, tools: recordedTools() },
    {
      name: 'without call-actor',
      via: 'auto' as const,
      tools: recordedTools().filter(({ name }) => name !== 'call-actor'),
    },
  ])("goes through the Actor's own tool when $name, and never with options", async ({ via, tools }) => {
    fake.onList = (exchange) => exchange.result({ tools });
    use({ config: { via } });
    okOf(await server.start({ ...start, input: { location: 'x', waitSecs: 30 } }));
    expect(lastCall().name).toBe('acme--yellowpages-scraper');
    expect(lastArguments()).toEqual({ location: 'x', waitSecs: 0 });
    const before = fake.calls().length;
    expect(failureOf(await server.start({ ...start, options: { maxItems: 1 } }))).toMatchObject({
      refusal: 'scrape',
      noEffect: true,
      message: expect.stringMatching(/maxItems/),
    });
    expect(fake.calls()).toHaveLength(before);
  });

  it.each(['acme/other', '__proto__', 'toString'])(
    'never calls a tool that is not allowed (%s)',
    async (tool) => {
      use();
      expect(failureOf(await server.start({ ...start, tool }))).toMatchObject({
        refusal: 'scrape',
        noEffect: true,
      });
      expect(fake.seen).toHaveLength(0);
    },
  );

  it('tells the run id of a progress notification before the answer, once', async () => {
    fake.onCall = ({ response, message }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const { progressToken } = message.params._meta as Json;
      for (const { params } of (recorded('progress-notifications')[0]?.replies ?? []) as {
        params?: Json;
      }[]) {
        if (!params) continue;
        const progress = {
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { ...params, progressToken },
        };
        response.write(`data: ${JSON.stringify(progress)}\n\n`);
      }
      early.then(() => response.destroy());
    };
    use();
    const ids: string[] = [];
    let seen: () => void = () => undefined;
    const early = new Promise<void>((resolve) => {
      seen = resolve;
    });
    const result = await server.start({
      ...start,
      onRunId: (runId) => {
        ids.push(runId);
        seen();
        throw new Error('a listener that fails does not fail the start');
      },
    });
    expect(ids).toEqual(['run00000000000008']);
    expect(failureOf(result)).toMatchObject({ kind: 'network_error', refusal: 'none', noEffect: false });
  });

  it.each(['../../etc/passwd', 'run\n1', 'run\u0000', 'x'.repeat(65), '', 7, null, { toString: 1 }])(
    'does not believe the run id %j: the start is ambiguous',
    async (runId) => {
      fake.onCall = (exchange) => exchange.result({ structuredContent: { runId, status: 'READY' } });
      use();
      expect(failureOf(await server.start(start))).toMatchObject({
        kind: 'invalid_response',
        refusal: 'none',
        noEffect: false,
      });
    },
  );

  it('holds the server and not the Actor when "Actor not found" comes with an empty list of tools', async () => {
    use();
    await server.describe();
    const content = [
      { type: 'text', text: `Actor '${actor}' was not found.\nPlease verify Actor ID or name format` },
    ];
    fake.onCall = (exchange) => exchange.result({ content, isError: true });
    expect(failureOf(await server.start(start))).toMatchObject({
      refusal: 'tool',
      holdReason: 'tools_missing',
      noEffect: true,
    });
    fake.onCall = (exchange) => {
      fake.onList = (list) => list.http(401, {}, 'Unauthorized');
      exchange.result({ content, isError: true });
    };
    expect(failureOf(await server.start(start))).toMatchObject({
      refusal: 'server',
      holdReason: 'auth',
      noEffect: true,
    });
  });

  it.each([
    { via: 'direct' as const, name: 'acme--yellowpages-scraper', refusal: 'tool' },
    { via: 'auto' as const, name: 'call-actor', refusal: 'server' },
  ])('an unknown tool ($name) is the fault of the $refusal', async ({ via, name, refusal }) => {
    const error = recorded('unknown-tool')[0]?.replies[0]?.error;
    const { message } = error as { message: string };
    fake.onCall = (exchange) => exchange.error(-32602, message.replace('get-actor-log', name));
    use({ config: { via } });
    const failure = failureOf(await server.start(start));
    expect(failure).toMatchObject({
      kind: 'protocol_error',
      refusal,
      holdReason: 'tools_missing',
      noEffect: true,
    });
    expect(failure.message).toMatch(/^Tool /);
    // What was known about the tools is forgotten.
    const before = fake.count('tools/list');
    await server.describe();
    expect(fake.count('tools/list')).toBeGreaterThanOrEqual(refusal === 'tool' ? before : before + 1);
  });

  it.each(['input_required', 'x'])(
    'a result that is a task (%s) leaves the start ambiguous',
    async (status) => {
      fake.onCall = (exchange) => exchange.result({ task: { taskId: 't', status }, resultType: 'task' });
      use();
      expect(failureOf(await server.start(start))).toMatchObject({
        kind: 'invalid_response',
        noEffect: false,
        refusal: 'none',
      });
    },
  );
});

describe('poll', () => {
  it.each([
    { waitSecs: undefined, sent: 0 },
    { waitSecs: 10.7, sent: 10 },
    { waitSecs: 60, sent: 45 },
    { waitSecs: -1, sent: 0 },
    { waitSecs: Number.NaN, sent: 0 },
    { waitSecs: Number.POSITIVE_INFINITY, sent: 0 },
  ])('waitSecs $waitSecs is sent as $sent', async ({ waitSecs, sent }) => {
    fake.onCall = (exchange) => exchange.result(resultOf('poll-running'));
    use();
    okOf(await server.poll(run1, waitSecs === undefined ? {} : { waitSecs }));
    expect(lastArguments()).toEqual({ runId: run1, waitSecs: sent });
  });

  it.each([
    { message: 'Validation errors: /waitSecs: must be <= 5.', learned: 5 },
    { message: 'MCP error -32602: MCP error -32602: waitSecs is out of range', learned: 0 },
    { message: 'Validation errors: /waitSecs: must be <= 45.', learned: 0 },
  ])('learns the cap from "$message"', async ({ message, learned }) => {
    fake.onCall = (exchange) => {
      const { waitSecs } = exchange.message.params.arguments as { waitSecs: number };
      if (waitSecs > learned) exchange.error(-32602, message);
      else exchange.result(resultOf('poll-running'));
    };
    use();
    okOf(await server.poll(run1, { waitSecs: 30 }));
    okOf(await server.poll(run1, { waitSecs: 30 }));
    const sent = fake.seen.flatMap(({ message: m }) =>
      m?.method === 'tools/call' ? [(m.params as Json).arguments] : [],
    );
    expect(sent).toEqual([30, learned, learned].map((waitSecs) => ({ runId: run1, waitSecs })));
  });

  it('takes the cap from the schema', async () => {
    const tools = recordedTools();
    const getRun = tools.find(({ name }) => name === 'get-actor-run') as {
      inputSchema: { properties: Json };
    };
    getRun.inputSchema.properties.waitSecs = { type: 'integer', maximum: 8 };
    fake.onList = (exchange) => exchange.result({ tools });
    fake.onCall = (exchange) => exchange.result(resultOf('poll-running'));
    use();
    expect(okOf(await server.describe()).waitSecsCap).toBe(8);
    okOf(await server.poll(run1, { waitSecs: 30 }));
    expect(lastArguments().waitSecs).toBe(8);
  });

  it('reads hostile runs within bounds', async () => {
    fake.onCall = (exchange) =>
      exchange.result({
        structuredContent: {
          runId: run1,
          status: 'lots of\nwords',
          statusMessage: `\u001b[2J${token}${'long '.repeat(3_000)}`,
          startedAt: 'yesterday',
          finishedAt: 17,
          storages: {
            datasets: {
              default: { id: '../x', itemCount: -4 },
              ['__proto__']: { id: 'dsProto', itemCount: 2 },
              leads: { id: 'dsLeads', itemCount: 3 },
              none: { id: 'dsNone', itemCount: 0 },
              ...Object.fromEntries(
                Array.from({ length: 500 }, (_, n) => [`d${n}`, { id: `ds${n}`, itemCount: 1 }]),
              ),
            },
            keyValueStores: {
              default: {
                id: 'kv1',
                keys: ['INPUT', 7, '', 'x'.repeat(300), 'OUTPUT', ...Array(500).fill('k')],
              },
            },
          },
        },
        _meta: { 'com.apify/ActorRun': { usageTotalUsd: 'free' } },
      });
    use();
    const run = okOf(await server.poll(run1));
    expect(run).toMatchObject({
      status: 'UNKNOWN',
      final: false,
      startedAtMs: null,
      finishedAtMs: null,
      datasetId: null,
      itemCount: null,
      storeId: 'kv1',
      usageUsd: null,
    });
    expect(run.statusMessage).toHaveLength(500);
    expect(run.statusMessage).toMatch(/^\[2J\[redacted\]long/);
    expect(run.recordKeys).toHaveLength(200);
    expect(run.recordKeys[0]).toBe('OUTPUT');
    expect(run.otherDatasets).toHaveLength(50);
    expect(run.otherDatasets).toContainEqual({ name: 'leads', id: 'dsLeads', itemCount: 3 });
  });
});

describe('readPage', () => {
  const request = { datasetId: 'ds1', offset: 10, limit: 3, fields: ['a', 'b.c'] };
  const page = (items: unknown[], more: Json = {}) => ({
    structuredContent: {
      datasetId: 'ds1',
      items,
      itemCount: items.length,
      totalItemCount: 13,
      offset: 10,
      limit: 3,
      ...more,
    },
  });

  it('sends offset, limit and fields, and hands out lines', async () => {
    const items = [{ a: 'x\ny\u2028', ['__proto__']: 1 }, null, 'ü'];
    fake.onCall = (exchange) => exchange.result(page(items));
    use();
    const { lines, bytes, totalItemCount } = okOf(await server.readPage(request));
    expect(lastArguments()).toEqual({ datasetId: 'ds1', offset: 10, limit: 3, fields: 'a,b.c' });
    expect(lines).toEqual(['{"a":"x\\ny\u2028","__proto__":1}', 'null', '"ü"']);
    expect(lines.every((line) => !line.includes('\n'))).toBe(true);
    expect(bytes).toBe(Buffer.byteLength(`${lines.join('\n')}\n`));
    expect(totalItemCount).toBe(13);
  });

  it.each([
    { name: 'items that are no list', reply: { structuredContent: { items: 'x' } } },
    { name: 'more items than asked for', reply: page([1, 2, 3, 4]) },
    { name: 'a count that does not fit', reply: page([1], { itemCount: 2 }) },
    { name: 'another offset', reply: page([1], { offset: 0 }) },
    { name: 'another limit', reply: page([1], { limit: 20 }) },
    { name: 'another dataset', reply: page([1], { datasetId: 'ds2' }) },
    { name: 'no items', reply: { structuredContent: { totalItemCount: 0 } } },
    { name: 'text alone', reply: { content: [{ type: 'text', text: 'Fetched all 0 items.' }] } },
  ])('$name is an invalid response', async ({ reply }) => {
    fake.onCall = (exchange) => exchange.result(reply as Json);
    use();
    expect(failureOf(await server.readPage(request)).kind).toBe('invalid_response');
  });

  it('survives nesting that nobody can write out again', async () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    fake.onCall = (exchange) =>
      exchange.http(
        200,
        { 'content-type': 'application/json' },
        `{"jsonrpc":"2.0","id":${exchange.message.id},"result":{"structuredContent":{"items":[${deep}]}}}`,
      );
    use();
    expect(failureOf(await server.readPage(request)).kind).toBe('invalid_response');
  });
});

describe('readRecord', () => {
  const content = (block: Json) => ({ content: [block] });
  it.each([
    {
      reply: { structuredContent: { value: 'hello', contentType: 'text/plain; charset=utf-8' } },
      kind: 'text',
      type: 'text/plain; charset=utf-8',
      body: 'hello',
    },
    { reply: { structuredContent: { value: '' } }, kind: 'text', type: 'text/plain', body: '' },
    {
      reply: { structuredContent: { value: 'quoted', contentType: 'application/json' } },
      kind: 'json',
      type: 'application/json',
      body: '"quoted"',
    },
    {
      reply: { structuredContent: { value: null, contentType: 'application/json' } },
      kind: 'json',
      type: 'application/json',
      body: 'null',
    },
    {
      reply: content({ type: 'text', text: '{"value":{"a":1},"contentType":"application/json"}' }),
      kind: 'json',
      type: 'application/json',
      body: '{"a":1}',
    },
    {
      reply: content({ type: 'audio', data: 'aGk=', mimeType: 'audio/mpeg' }),
      kind: 'binary',
      type: 'audio/mpeg',
      body: 'hi',
    },
    {
      reply: content({ type: 'resource', resource: { blob: 'aGk=' } }),
      kind: 'binary',
      type: 'application/octet-stream',
      body: 'hi',
    },
    {
      reply: content({ type: 'resource', resource: { text: '<a/>', mimeType: 'text/xml' } }),
      kind: 'text',
      type: 'text/xml',
      body: '<a/>',
    },
    {
      reply: content({ type: 'image', data: 'aGk=', mimeType: 'image/png\r\nx: y' }),
      kind: 'binary',
      type: 'application/octet-stream',
      body: 'hi',
    },
  ])('$kind $type', async ({ reply, kind, type, body }) => {
    fake.onCall = (exchange) => exchange.result(reply as Json);
    use();
    const record = okOf(await server.readRecord('kv1', 'OUT'));
    expect(record).toEqual({ kind, contentType: type, body: Buffer.from(body) });
  });

  it('a large one is a link', async () => {
    const link = {
      type: 'resource_link',
      uri: 'https://api.apify.com/v2/x?signature=abc',
      name: 'BIG',
      mimeType: 'video/mp4',
    };
    fake.onCall = (exchange) =>
      exchange.result({ ...content(link), structuredContent: { value: '<binary video/mp4, 999999 bytes>' } });
    use();
    expect(okOf(await server.readRecord('kv1', 'BIG'))).toEqual({
      kind: 'link',
      contentType: 'video/mp4',
      uri: link.uri,
    });
  });

  it.each([
    { structuredContent: { value: '<binary image/png, 4 bytes>', contentType: 'image/png' } },
    { structuredContent: { contentType: 'image/png' } },
    content({ type: 'image', data: '!!!' }),
    content({ type: 'image' }),
    content({ type: 'resource_link' }),
  ])('%j is an invalid response', async (reply) => {
    fake.onCall = (exchange) => exchange.result(reply as Json);
    use();
    expect(failureOf(await server.readRecord('kv1', 'PIC')).kind).toBe('invalid_response');
  });
});

describe('listRuns', () => {
  it('asks for ten at most, newest first, and does not believe another order', async () => {
    const items = Array.from({ length: 10 }, (_, n) => ({
      id: `run${n}`,
      startedAt: new Date(n).toISOString(),
    }));
    fake.onCall = (exchange) =>
      exchange.result({
        structuredContent: { items: [...items, 7, { id: '../x' }], total: 500, desc: true },
      });
    use();
    const { runs, total } = okOf(await server.listRuns({ offset: 20, limit: 1_000 }));
    expect(lastArguments()).toEqual({ offset: 20, limit: 10, desc: true });
    expect(total).toBe(500);
    expect(runs.map(({ runId }) => runId)).toEqual(items.map(({ id }) => id).reverse());
    fake.onCall = (exchange) => exchange.result({ structuredContent: { items, total: 500, desc: false } });
    expect(failureOf(await server.listRuns({ offset: 0, limit: 10 })).kind).toBe('invalid_response');
  });
});
