import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.js';
import { checkServer } from '../../src/doctor/servers.js';
import { createLimiter, memoryTokens } from '../../src/mcp/limiter.js';
import { createApifyServer } from '../../src/mcp/profiles/apify.js';
import { defaultActor } from './apify-api-stub.js';
import { RealApifyServer } from './apify-server.js';

let real: RealApifyServer;

beforeAll(async () => {
  real = await RealApifyServer.start([defaultActor, { ...defaultActor, name: 'other' }]);
});

afterAll(() => real?.stop());

/** Findings that are not in order. */
async function findings(server: { tools: string[]; via?: string; token?: string }): Promise<string[]> {
  const text = JSON.stringify({ servers: { apify: { url: real.url, token: 'any-token', ...server } } });
  const config = loadConfig({ text, cwd: '/', env: {} });
  const own = config.servers.apify;
  if (own === undefined) throw new Error('no server');
  const port = createApifyServer({
    server: own,
    answerBytes: config.limits.answerBytes,
    limiter: createLimiter(memoryTokens(100)),
    observe: () => {},
    log: { debug() {}, warn() {} },
  });
  try {
    const checks = await checkServer(port, own, config);
    return checks
      .filter((check) => check.ok !== 'ok')
      .map(({ name, ok, message }) => `${ok} ${name}: ${message}`);
  } finally {
    await port.close();
  }
}

describe('the doctor at a real server', () => {
  it('finds everything in order', async () => {
    expect(await findings({ tools: ['acme/yellowpages-scraper'] })).toEqual([]);
    expect(real.stub.ledger.starts).toEqual([]);
  });

  it('warns of runs without a bound when only direct tools are used', async () => {
    const found = await findings({ tools: ['acme/yellowpages-scraper'], via: 'direct' });
    expect(found).toEqual(expect.arrayContaining([expect.stringMatching(/^warn run timeout:/)]));
  });

  it.each([
    ['misspelt', { tools: ['acme/yellowpages-scraper', 'acme/misspelt'] }],
    ['unknown', { tools: ['acme/misspelt'] }],
  ])('names an Actor that is %s', async (_what, server) => {
    expect(await findings(server)).toEqual([expect.stringMatching(/^fail tools: .*acme\/misspelt/)]);
  });

  it('fails for a token that the API refuses', async () => {
    real.stub.tokens = new Set(['good']);
    // Described for nobody yet: the server keeps descriptions, whoever asked for them.
    const found = await findings({ tools: ['acme/other'], token: 'bad' });
    real.stub.tokens = null;
    expect(found).toEqual([expect.stringMatching(/^fail (tools|token): /)]);
  });
});
