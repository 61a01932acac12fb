import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.js';
import { checkServer } from '../../src/doctor/servers.js';
import type { CallFailure, CallResult, ScrapeServer, ServerDescription } from '../../src/mcp/port.js';

const text = `
poll: { interval: 10s, waitSecs: 20 }
servers:
  apify:
    token: canary-token
    tools: [acme/one, acme/two]
    limits: { runs: 5, requestsPerSecond: 20 }
`;
const config = loadConfig({ text, cwd: '/', env: {} });
const own = config.servers.apify;
if (own === undefined) throw new Error('no server');

const tool = { toolName: 'acme--one', inputSchema: null };
const healthy: ServerDescription = {
  serverName: 'apify',
  serverVersion: '0.16.0',
  toolNames: [],
  tools: new Map([
    ['acme/one', tool],
    ['acme/two', tool],
  ]),
  missing: [],
  via: 'call-actor',
  waitSecsCap: 45,
  canList: true,
};
const failure: CallFailure = {
  kind: 'http_error',
  message: 'it said\u001b[2J\u0007 no',
  rpcCode: null,
  httpStatus: null,
  retryAfterMs: null,
  apiErrorType: null,
  refusal: 'none',
  holdReason: null,
  notFound: false,
  noEffect: true,
};

/** Only `describe` may be asked: a doctor starts nothing. */
function saying(result: CallResult<ServerDescription>): ScrapeServer {
  return { describe: async () => result } as Partial<ScrapeServer> as ScrapeServer;
}

const ask = (result: CallResult<ServerDescription>) => checkServer(saying(result), own, config);

describe('checking a server', () => {
  it('finds nothing to say about a healthy one', async () => {
    const checks = await ask({ ok: true, value: healthy });
    expect(checks.map((check) => [check.name, check.ok])).toEqual(
      ['reachable', 'token', 'tools', 'limits', 'poll.waitSecs', 'run timeout', 'run list'].map((name) => [
        name,
        'ok',
      ]),
    );
    expect(checks[2]?.message).toBe('2 of 2 found: acme/one, acme/two');
    expect(checks[3]?.message).toBe('5 runs at once, 20 requests a second, all workers together');
  });

  it.each<[string, 'warn' | 'fail', RegExp, Partial<ServerDescription>]>([
    [
      'tools',
      'fail',
      /1 of 2 found, missing: acme\/two$/,
      { tools: new Map([['acme/one', tool]]), missing: ['acme/two'] },
    ],
    ['tools', 'fail', /l1, .* and 40 more$/, { missing: Array.from({ length: 50 }, (_, i) => `acme/l${i}`) }],
    ['run timeout', 'warn', /unbounded when no worker lives/, { via: 'direct' }],
    ['run list', 'warn', /start_unknown/, { canList: false }],
    ['poll.waitSecs', 'warn', /20s is more than allowed; the server waits up to 15s/, { waitSecsCap: 15 }],
  ])('%s: %s, %s', async (name, state, message, changes) => {
    const checks = await ask({ ok: true, value: { ...healthy, ...changes } });
    const found = checks.filter((check) => check.ok !== 'ok');
    expect(found).toEqual([
      { name, ok: state, message: expect.stringMatching(message), hint: expect.stringMatching(/\w/) },
    ]);
  });

  it('warns when polling alone takes most of the requests', async () => {
    const busy = { ...own, limits: { ...own.limits, runs: 150 } };
    const checks = await checkServer(saying({ ok: true, value: healthy }), busy, config);
    expect(checks.find((check) => check.name === 'limits')).toMatchObject({
      ok: 'warn',
      message: expect.stringContaining('polling alone takes 15.0 a second'),
    });
  });

  it.each<[string, 'warn' | 'fail', RegExp, Partial<CallFailure>]>([
    ['token', 'fail', /refused: it said no/, { refusal: 'server', holdReason: 'auth', httpStatus: 401 }],
    ['tools', 'fail', /it said no/, { refusal: 'server', holdReason: 'tools_missing' }],
    ['account', 'fail', /it said no/, { refusal: 'server', holdReason: 'payment' }],
    ['reachable', 'warn', /busy/, { refusal: 'not_now', holdReason: 'rate_limit' }],
    ['reachable', 'warn', /busy/, { refusal: 'not_now', holdReason: 'capacity' }],
    ['reachable', 'fail', /HTTP 500/, { httpStatus: 500 }],
    [
      'reachable',
      'fail',
      /it said no/,
      { kind: 'network_error', holdReason: 'unreachable', refusal: 'server' },
    ],
    ['reachable', 'fail', /it said no/, { kind: 'timeout' }],
    ['reachable', 'fail', /it said no/, { kind: 'invalid_response' }],
  ])('that refuses: %s %s %s %j', async (name, state, message, changes) => {
    const checks = await ask({ ok: false, failure: { ...failure, ...changes } });
    const last = checks.at(-1);
    expect(last).toMatchObject({ name, ok: state, message: expect.stringMatching(message) });
    expect(last?.hint).toMatch(/\w/);
    expect(JSON.stringify(checks)).not.toMatch(/\\u001b|\\u0007|canary/);
  });

  it('prints nothing of a server that could move a cursor', async () => {
    const evil = 'a\u001b]0;title\u0007\nb\u202e';
    const checks = await ask({
      ok: true,
      value: { ...healthy, serverName: evil, serverVersion: evil, missing: [evil] },
    });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    expect(checks.filter((check) => /[\u0000-\u001f\u202e]/.test(check.message))).toEqual([]);
  });
});
