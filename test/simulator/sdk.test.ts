import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Sim, startSim } from '../sim/index.js';
import { until } from './client.js';

/** The client library the product is built on, unchanged: its own schemas and output checks are the judges here. */
const acme = 'acme/yellowpages-scraper';
let sim: Sim;
beforeAll(async () => {
  sim = await startSim({ conditions: { mix: 'fixed' } });
});
beforeEach(() => sim.reset({ sessions: true }));
afterAll(() => sim.close());

interface Run {
  readonly runId: string;
  readonly status: string;
}

async function connect(): Promise<{ client: Client; transport: StreamableHTTPClientTransport }> {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(
    new URL(`${sim.url}?tools=${acme},call-actor,runs,storage`),
    {
      requestInit: { headers: { authorization: 'Bearer any' } },
    },
  );
  await client.connect(transport);
  return { client, transport };
}

describe.each(['sse', 'json'] as const)('the SDK client (%s)', (answers) => {
  beforeEach(() => sim.set({ answers }));

  it('lists, starts, polls, reads, gets records, aborts; every answer fits its output schema', async () => {
    const { client, transport } = await connect();
    const { tools } = await client.listTools();
    expect(tools).toHaveLength(9);
    const call = async (name: string, args: Record<string, unknown>) => {
      const result = await client.callTool({ name, arguments: args });
      expect(result.isError).not.toBe(true);
      return result.structuredContent as Record<string, unknown>;
    };
    const input = {
      location: 'x',
      sim: { runSecs: 100, items: 30, records: { PIC: { contentType: 'image/png', bytes: 9 } } },
    };
    const { runId } = (await call('call-actor', { actor: acme, input, waitSecs: 0 })) as unknown as Run;
    expect((await call('get-actor-run', { runId, waitSecs: 0 })).status).toBe('RUNNING');
    sim.finish(runId);
    expect((await call('get-actor-run', { runId, waitSecs: 0 })).status).toBe('SUCCEEDED');
    const page = await call('get-dataset-items', { datasetId: `ds${runId}`, offset: 10, limit: 100 });
    expect(page.items).toHaveLength(20);
    await call('get-dataset', { datasetId: `ds${runId}` });
    await call('get-key-value-store-record', { keyValueStoreId: `kv${runId}`, recordKey: 'PIC' });
    await call('get-actor-run-log', { runId });
    expect((await call('get-actor-run-list', { limit: 5 })).total).toBe(1);
    const direct = await call('acme--yellowpages-scraper', { location: 'x', durationSecs: 100, waitSecs: 0 });
    const aborted = await call('abort-actor-run', { runId: direct.runId });
    expect(aborted.status).toBe('ABORTED');
    await client.ping();
    await transport.terminateSession();
    await client.close();
    expect(sim.stats().sessions).toBe(0);
  });

  it('learns the run id from progress, and its cancel aborts the run', async () => {
    const { client } = await connect();
    const controller = new AbortController();
    let told = 0;
    const call = client.callTool(
      { name: 'acme--yellowpages-scraper', arguments: { location: 'x', durationSecs: 100, waitSecs: 45 } },
      undefined,
      { signal: controller.signal, onprogress: () => (told += 1) },
    );
    call.catch(() => undefined);
    await until(() => told === 1, 'progress came');
    controller.abort();
    await expect(call).rejects.toThrow();
    await until(() => sim.stats().runsByStatus.ABORTED === 1, 'the run is aborted');
    await client.close();
  });

  it('gets McpError for -32602 and a resolved call for isError', async () => {
    const { client } = await connect();
    const wrong = client.callTool({ name: 'get-actor-run', arguments: { runId: 'x', waitSecs: 60 } });
    await expect(wrong).rejects.toMatchObject({ code: -32602 });
    const lost = await client.callTool({ name: 'get-actor-run', arguments: { runId: 'x', waitSecs: 0 } });
    expect(lost.isError).toBe(true);
    sim.dropSessions();
    await expect(client.ping()).rejects.toMatchObject({ code: 404 });
    await client.close();
  });
});

it('a standing stream opens when it is switched on', async () => {
  sim.set({ standingStream: true });
  const { client } = await connect();
  expect((await client.listTools()).tools).toHaveLength(9);
  await client.close();
});
