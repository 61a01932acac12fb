import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { defaultActor } from './apify-api-stub.js';
import { RealApifyServer } from './apify-server.js';
import { callTool, connectRaw, type ToolAnswer } from './raw-client.js';

let server: RealApifyServer;
let client: Client;

beforeAll(async () => {
  server = await RealApifyServer.start([defaultActor, { ...defaultActor, name: 'other' }]);
  client = await connectRaw(server, { tools: 'acme/yellowpages-scraper,call-actor,runs' });
});

beforeEach(() => expect(server.stub.clearFaults()).toBe(0));

afterAll(async () => {
  await client?.close();
  await server?.stop();
});

const call = (name: string, args: Record<string, unknown>) => callTool(client, name, args);

interface RunAnswer {
  runId: string;
  status: string;
  statusMessage?: string;
  storages: {
    datasets: { default: { id: string; itemCount?: number } };
    keyValueStores: { default: { id: string } };
  };
}

const runIn = (answer: ToolAnswer) => answer.structuredContent as unknown as RunAnswer;

async function start(input: object, callOptions?: object): Promise<RunAnswer> {
  const actor = 'acme/yellowpages-scraper';
  const options = callOptions ? { callOptions } : {};
  const answer = await call('call-actor', {
    actor,
    input: { location: 'x', ...input },
    waitSecs: 0,
    ...options,
  });
  return runIn(answer);
}

async function finish(run: RunAnswer): Promise<RunAnswer> {
  return runIn(await call('get-actor-run', { runId: run.runId, waitSecs: 10 }));
}

describe('the real Apify MCP server, in front of the stub of its API', () => {
  it('shows the Actor, the helpers and the tools of runs', async () => {
    const names = (await client.listTools()).tools.map((tool) => tool.name);
    const asked = ['acme--yellowpages-scraper', 'call-actor', 'get-actor-run', 'get-dataset-items'];
    expect(names).toEqual(expect.arrayContaining(asked));
    expect(names).toEqual(
      expect.arrayContaining(['get-key-value-store-record', 'abort-actor-run', 'get-actor-run-list']),
    );
    expect(client.getServerVersion()).toMatchObject({ name: 'apify-mcp-server', version: '0.16.0' });
  });

  it('starts a run with its options, is polled, and gives its items in pages', async () => {
    const run = await start({ durationSecs: 0.3, items: 37 }, { memory: 256, timeout: 120, maxItems: 50 });
    expect(['READY', 'RUNNING']).toContain(run.status);
    expect(server.stub.ledger.starts.at(-1)).toMatchObject({
      runId: run.runId,
      query: { memory: '256', timeout: '120', maxItems: '50' },
      token: 'any-token',
    });
    const done = await finish(run);
    expect(done).toMatchObject({
      status: 'SUCCEEDED',
      storages: { datasets: { default: { itemCount: 37 } } },
    });
    const datasetId = done.storages.datasets.default.id;
    const indices: number[] = [];
    for (const offset of [0, 20, 40]) {
      const page = await call('get-dataset-items', { datasetId, offset, limit: 20 });
      expect(page.structuredContent).toMatchObject({ totalItemCount: 37 });
      const { items } = page.structuredContent as { items: { idx: number }[] };
      indices.push(...items.map((item) => item.idx));
    }
    expect(indices).toEqual(Array.from({ length: 37 }, (_, index) => index));
    expect(server.stub.ledger.reads.slice(-3).map((read) => read.offset)).toEqual([0, 20, 40]);
  });

  it('reads an input of more than 1 KB, which arrives compressed', async () => {
    const note = 'long '.repeat(1_000);
    const run = await start({ note });
    expect(server.stub.ledger.starts.at(-1)).toMatchObject({ runId: run.runId, input: { note } });
  });

  it('says FAILED, TIMED-OUT and what the Actor said, without an error', async () => {
    const failing = await finish(
      await start({ items: 4, outcome: 'FAILED', statusMessage: 'Proxy exploded.' }),
    );
    expect(failing).toMatchObject({ status: 'FAILED', statusMessage: 'Proxy exploded.' });
    expect(failing.storages.datasets.default.itemCount).toBe(4);
    const late = await finish(await start({ durationSecs: 60 }, { timeout: 1 }));
    expect(late.status).toBe('TIMED-OUT');
  });

  it('aborts, and passes through ABORTING', async () => {
    const run = await start({ durationSecs: 60, items: 10, abortSecs: 0.3 });
    const aborted = await call('abort-actor-run', { runId: run.runId });
    expect(runIn(aborted).status).toBe('ABORTING');
    expect((await finish(run)).status).toBe('ABORTED');
    expect(server.stub.ledger.aborts.at(-1)).toEqual({ runId: run.runId, gracefully: false });
    expect(server.stub.active).not.toContain(run.runId);
  });

  it('lets the item count lag, or go missing', async () => {
    const run = await start({ items: 3, lagSecs: 2 });
    const early = runIn(await call('get-actor-run', { runId: run.runId, waitSecs: 0 }));
    expect(early).toMatchObject({
      status: 'SUCCEEDED',
      storages: { datasets: { default: { itemCount: 0 } } },
    });
    expect((await finish(run)).storages.datasets.default.itemCount).toBe(3);
    server.stub.dropMetadata = true;
    expect((await finish(run)).storages.datasets.default.itemCount).toBeUndefined();
    server.stub.dropMetadata = false;
  });

  it('gives records: JSON, text, binary, large binary, none', async () => {
    const png = Buffer.from('89504e47', 'hex').toString('base64');
    const records = {
      OUTPUT: { contentType: 'application/json', body: '{"found":3}' },
      NOTE: { contentType: 'text/plain', body: 'hello' },
      PIC: { contentType: 'image/png', body: png, binary: true },
      BIG: { contentType: 'image/png', body: '', bytes: 300_000 },
    };
    const run = await finish(await start({ items: 1, records }));
    const keyValueStoreId = run.storages.keyValueStores.default.id;
    const read = (recordKey: string) => call('get-key-value-store-record', { keyValueStoreId, recordKey });
    expect((await read('OUTPUT')).structuredContent?.value).toEqual({ found: 3 });
    expect((await read('NOTE')).structuredContent?.value).toBe('hello');
    expect((await read('PIC')).content[0]).toMatchObject({ type: 'image', data: png, mimeType: 'image/png' });
    expect((await read('BIG')).content[0]?.type).toBe('resource_link');
    expect((await read('NONE')).isError).toBe(true);
  });

  it('goes on after a 429 that passes, by itself', async () => {
    server.stub.failNext({ on: 'POST /v2/actors/', status: 429, type: 'rate-limit-exceeded', times: 2 });
    const before = server.stub.ledger.starts.length;
    const run = await start({});
    expect(run.runId).toMatch(/^run/);
    expect(server.stub.ledger.starts.length).toBe(before + 1);
  });

  it('makes two runs of one call when the answer of the API is lost', async () => {
    server.stub.failNext({ on: 'POST /v2/actors/', resetAfterEffect: true });
    const before = server.stub.ledger.starts.length;
    const run = await start({ durationSecs: 30 });
    const made = server.stub.ledger.starts.slice(before).map((one) => one.runId);
    expect(made).toHaveLength(2);
    expect(made[1]).toBe(run.runId);
    const listed = await call('get-actor-run-list', { limit: 2, desc: true });
    const ids = (listed.structuredContent ?? (JSON.parse(listed.content[0]?.text ?? '{}') as object)) as {
      items: { id: string }[];
    };
    expect(ids.items.map((one) => one.id)).toEqual(made.toReversed());
  });

  it.each([
    [402, 'not-enough-usage-to-run-paid-actor', 'You have no money left'],
    [403, 'insufficient-permissions', 'Not allowed'],
  ])('passes a %i of the API on as a tool error', async (status, type, message) => {
    server.stub.failNext({ on: 'POST /v2/actors/', status, type, message });
    const answer = await call('call-actor', {
      actor: 'acme/yellowpages-scraper',
      input: { location: 'x' },
      waitSecs: 0,
    });
    expect(answer.isError).toBe(true);
  });

  it('shows no tool at all for an unknown Actor, and none for a token the API refuses', async () => {
    const unknown = await connectRaw(server, { tools: 'acme/no-such-actor' });
    expect((await unknown.listTools()).tools).toEqual([]);
    await unknown.close();
    server.stub.tokens = new Set(['good']);
    // An Actor that it has not described yet: descriptions are kept, whoever asked for them.
    const refused = await connectRaw(server, { tools: 'acme/other', token: 'bad' });
    expect((await refused.listTools()).tools).toEqual([]);
    await refused.close();
    const known = await connectRaw(server, { tools: 'acme/yellowpages-scraper', token: 'bad' });
    const answer = await callTool(known, 'get-actor-run', { runId: 'run1', waitSecs: 0 });
    expect(answer).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/token is not valid/) }],
    });
    server.stub.tokens = null;
    await known.close();
  });

  it('refuses a request without a token', async () => {
    await expect(connectRaw(server, { tools: 'x', token: '' })).rejects.toMatchObject({ code: 401 });
  });
});
