import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.js';
import { createLimiter, memoryTokens } from '../../src/mcp/limiter.js';
import type { CallFailure, ScrapeServer } from '../../src/mcp/port.js';
import { createApifyServer } from '../../src/mcp/profiles/apify.js';
import { RealApifyServer } from './apify-server.js';

const tool = 'acme/yellowpages-scraper';
const byThis = 'By launching this job you will exceed';
const concurrent = 'the account limit for concurrent Actor runs.';

let real: RealApifyServer;
const ports: Record<string, ScrapeServer> = {};

beforeAll(async () => {
  real = await RealApifyServer.start();
  for (const via of ['auto', 'direct']) ports[via] = portTo({ via });
});

afterAll(async () => {
  for (const port of Object.values(ports)) await port.close();
  await real?.stop();
});

function portTo(server: Record<string, unknown>): ScrapeServer {
  const text = JSON.stringify({
    servers: { apify: { url: real.url, token: 'any', tools: [tool], ...server } },
  });
  const config = loadConfig({ text, cwd: '/', env: {} });
  const own = config.servers.apify;
  if (own === undefined) throw new Error('no server');
  return createApifyServer({
    server: own,
    answerBytes: config.limits.answerBytes,
    limiter: createLimiter(memoryTokens(1000)),
    observe: () => {},
    log: { debug() {}, warn() {} },
  });
}

async function refusedStart(via: string): Promise<CallFailure> {
  const result = await (ports[via] as ScrapeServer).start({
    tool,
    input: { location: 'Austin' },
    options: {},
    runTimeoutMs: 60_000,
    timeoutMs: 30_000,
  });
  if (result.ok) throw new Error('it was not refused');
  return result.failure;
}

type Blame = readonly [CallFailure['refusal'], CallFailure['holdReason']];

/** Status, type and sentence of the API's error; whose fault it is and what is held. */
const refusals: [number, string, string, ...Blame][] = [
  [400, 'invalid-input', 'Input is not valid: Field input.startUrls is required', 'scrape', null],
  [400, 'max-total-charge-usd-below-minimum', 'Max total charge USD is below the minimum', 'scrape', null],
  [
    401,
    'user-or-token-not-found',
    'User was not found or authentication token is not valid',
    'server',
    'auth',
  ],
  [402, 'actor-memory-limit-exceeded', `${byThis} the memory limit of 8192MB for all`, 'not_now', 'capacity'],
  [402, 'concurrent-runs-limit-exceeded', `${byThis} ${concurrent}`, 'not_now', 'capacity'],
  [402, 'not-enough-usage-to-run-paid-actor', `${byThis} your remaining usage.`, 'server', 'payment'],
  [402, 'payment-required', 'Payment required', 'server', 'payment'],
  [403, 'platform-feature-disabled', 'Monthly usage hard limit exceeded', 'server', 'payment'],
  [403, 'actor-is-not-rented', 'You must rent a paid Actor in order to run it.', 'tool', 'payment'],
  [403, 'full-permission-actor-not-approved', 'Approve here: https://console.apify.com/x', 'tool', 'auth'],
  [403, 'insufficient-permissions', 'Insufficient permissions for the Actor.', 'tool', 'auth'],
  [403, 'actor-disabled', 'Actor is disabled', 'tool', 'tools_missing'],
  [404, 'actor-not-found', 'Actor was not found', 'tool', 'tools_missing'],
];

/**
 * An Actor's own tool reads the run after its start, and when that read is refused it answers with the very same words:
 * of these a run may exist.
 */
const unprovedWhenDirect = new Set(['user-or-token-not-found', 'insufficient-permissions']);

describe.each(['auto', 'direct'])('a start that the API refuses, via: %s', (via) => {
  it.each(refusals)('%i %s', async (status, type, message, refusal, holdReason) => {
    real.stub.failNext({ on: 'POST /v2/actors/', status, type, message });
    const unproved = via === 'direct' && unprovedWhenDirect.has(type);
    expect(await refusedStart(via)).toMatchObject(
      unproved
        ? { refusal: 'none', holdReason: null, noEffect: false }
        : { refusal, holdReason, noEffect: true },
    );
    expect(real.stub.clearFaults()).toBe(0);
    expect(real.stub.ledger.starts).toEqual([]);
  });
});

describe("a read that the API refuses, after the start by an Actor's own tool", () => {
  it.each([...unprovedWhenDirect])('%s', async (type) => {
    const [status, , message] = refusals.find((one) => one[1] === type) as (typeof refusals)[number];
    real.stub.failNext({ on: 'GET /v2/actor-runs/', status, type, message });
    expect(await refusedStart('direct')).toMatchObject({ refusal: 'none', noEffect: false });
    expect(real.stub.ledger.starts.splice(0)).toHaveLength(1);
  });
});
