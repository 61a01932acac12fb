import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { RealApifyServer } from './apify-server.js';

export interface ToolAnswer {
  readonly isError?: boolean;
  readonly structuredContent?: Record<string, unknown>;
  readonly content: readonly { type: string; text?: string; data?: string; mimeType?: string }[];
  readonly _meta?: Record<string, unknown>;
}

/** The SDK's client as it comes, to see what the server itself does. */
export async function connectRaw(
  server: RealApifyServer,
  options: { tools: string; token?: string },
): Promise<Client> {
  const url = new URL(server.url);
  url.searchParams.set('tools', options.tools);
  const client = new Client({ name: 'raw', version: '1' });
  const headers = { authorization: `Bearer ${options.token ?? 'any-token'}` };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

export async function callTool(
  client: Client,
  name: string,
  args: Record<string, unknown>,
): Promise<ToolAnswer> {
  return (await client.callTool({ name, arguments: args })) as unknown as ToolAnswer;
}
