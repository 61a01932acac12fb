import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

/** The loop everybody writes first: the SDK as it comes, the same calls, nothing kept anywhere. */
process.once(
  'message',
  async (message: { url: string; tool: string; input: object; scrapes: number; atOnce: number }) => {
    const client = new Client({ name: 'loop', version: '1' });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`?tools=${message.tool},call-actor,runs`, message.url), {
        requestInit: { headers: { authorization: 'Bearer x' } },
      }),
    );
    const call = async (name: string, args: object) =>
      (await client.callTool({ name, arguments: { ...args } })).structuredContent as Record<string, unknown>;
    let next = 0;
    let items = 0;
    const begun = performance.now();
    const one = async () => {
      while (next < message.scrapes) {
        next += 1;
        const run = await call('call-actor', { actor: message.tool, input: message.input, waitSecs: 0 });
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        const polled = await call('get-actor-run', { runId: run.runId, waitSecs: 0 });
        const datasetId = (polled.storages as { datasets: { default: { id: string } } }).datasets.default.id;
        const page = await call('get-dataset-items', { datasetId, offset: 0, limit: 128 });
        items += (page.items as unknown[]).length;
      }
    };
    await Promise.all(Array.from({ length: message.atOnce }, one));
    process.send?.({ seconds: (performance.now() - begun) / 1000, items });
    process.disconnect();
  },
);
