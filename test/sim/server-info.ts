const protocolVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

/** The result of `initialize` (initialize-and-tools-list.json), with instructions of our own. */
export function initializeResult(askedVersion: unknown): string {
  const asked = String(askedVersion);
  return JSON.stringify({
    protocolVersion: protocolVersions.includes(asked) ? asked : protocolVersions[0],
    capabilities: {
      tools: {},
      tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
      resources: {},
      prompts: {},
      logging: {},
    },
    serverInfo: {
      name: 'apify-mcp-server',
      title: 'Apify MCP Server',
      version: '0.16.0',
      description:
        'Extract data from any website with thousands of scrapers, crawlers, and automations on Apify Store ⚡',
      websiteUrl: 'https://docs.apify.com/integrations/mcp',
      icons: [{ src: 'https://apify.com/apple-icon.png', mimeType: 'image/png', sizes: ['180x180'] }],
    },
    instructions: 'A simulated Apify MCP server. Its runs cost nothing and scrape nothing.',
  });
}
