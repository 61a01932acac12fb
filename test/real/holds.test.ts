import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { WorkerContext } from '../../workers/context.js';
import { probeServers } from '../../workers/probes.js';
import { Fleet } from '../workers/fleet.js';
import { defaultActor } from './apify-api-stub.js';
import { RealApifyServer } from './apify-server.js';

const tool = 'acme/yellowpages-scraper';
/** Unknown to the API at first. */
const late = 'acme/published-later';
const backlog = ['backlog-1', 'backlog-2', 'backlog-3', 'backlog-4', 'backlog-5'];

let real: RealApifyServer;
let fleet: Fleet;
let ctx: WorkerContext;

const job = (id: string, server: string, actor: string, plan: object = {}) =>
  fleet.add(id, { server, tool: actor, input: { location: id, items: 2, ...plan } });

const startsOf = (id: string) =>
  real.stub.ledger.starts.filter(({ input }) => (input as { location: string }).location === id);

const asked = (what: RegExp) =>
  real.stub.ledger.requests.filter(({ method, path, status }) => what.test(`${method} ${path} ${status}`));

/** What the daemon said of a server, by event. */
const said = (server: string, event: string) =>
  fleet.logged.filter((line) => line.server === server && line.event === event);

const serverHold = async (server: string) => (await ctx.holds.state(server)).hold;

beforeAll(async () => {
  const actors = ['yellowpages-scraper', 'unseen', 'paid'].map((name) => ({ ...defaultActor, name }));
  real = await RealApifyServer.start(actors);
  const { stub, url } = real;
  stub.tokens = new Set(['good-token', 'fickle-token']);
  const limits = { runs: 40, requestsPerSecond: 1000 };
  const good = { url, token: 'good-token', limits };
  fleet = await Fleet.inFrontOf({
    apify: { ...good, tools: [tool, late] },
    misspelt: { ...good, tools: [late] },
    fickle: { ...good, token: 'fickle-token', tools: [tool] },
    dead: { ...good, token: 'dead-token', tools: ['acme/unseen'] },
    paid: { ...good, tools: ['acme/paid'], via: 'direct' },
  });
  ({ ctx } = await fleet.daemon());
});

afterAll(async () => {
  await fleet?.close();
  await real?.stop();
});

/** All on one server process, which takes its time; nothing here may reject or lose a scrape. */
describe('what the workers hold at the real Apify MCP server, and how they go on', () => {
  it('holds a tool that the server does not show, and that tool alone', async () => {
    await Promise.all([job('missing', 'apify', late), job('beside', 'apify', tool)]);
    await vi.waitFor(async () => {
      const { hold, tools } = await ctx.holds.state('apify');
      expect(hold).toBeNull();
      expect(tools[late]?.hold).toMatchObject({
        reason: 'tools_missing',
        message: `The server does not show the tool ${late}; check its name and that the token may use it.`,
      });
    }, 10_000);
    expect(await fleet.outcome('beside')).toMatchObject({ outcome: 'succeeded', items: 2 });
  });

  it.each([
    ['misspelt', 'misspelt', late],
    ['dead token', 'dead', 'acme/unseen'],
  ])('holds a server that shows nothing: %s', async (_what, server, actor) => {
    await job(server, server, actor);
    await vi.waitFor(async () => {
      expect(await serverHold(server)).toMatchObject({
        reason: 'tools_missing',
        message: expect.stringMatching(`for ${actor}\\. Check the names .*servers\\.${server}\\.tools`),
      });
    }, 10_000);
  });

  it('holds a server whose token was revoked with a run under way and a backlog', async () => {
    await job('under-way', 'fickle', tool, { durationSecs: 2 });
    await vi.waitFor(() => expect(startsOf('under-way')).toHaveLength(1), 10_000);
    real.stub.tokens = new Set(['good-token']);
    await Promise.all(backlog.map((id) => job(id, 'fickle', tool)));
    const poll = new RegExp(`^GET /v2/actor-runs/${startsOf('under-way')[0]?.runId} 401$`);
    await vi.waitFor(() => expect(asked(poll).length).toBeGreaterThan(1), 10_000);
    expect(await serverHold('fickle')).toMatchObject({
      reason: 'auth',
      message: expect.stringMatching(/authentication token is not valid/),
    });
  });

  it('is not fooled by a list of tools that the server remembers', async () => {
    const starts = asked(/^POST .* 401$/).length;
    await probeServers(ctx);
    expect(asked(/^GET \/v2\/actor-runs 401$/)).toHaveLength(1);
    expect(await serverHold('fickle')).toMatchObject({ reason: 'auth' });
    expect(asked(/^POST .* 401$/)).toHaveLength(starts);
  });

  it('holds a server that asks for money', async () => {
    real.stub.failNext({ on: 'POST /v2/actors/acme~paid', status: 402, message: 'Payment required' });
    await job('unpaid', 'paid', 'acme/paid');
    await vi.waitFor(
      async () => expect(await serverHold('paid')).toMatchObject({ reason: 'payment' }),
      10_000,
    );
    expect(startsOf('unpaid')).toEqual([]);
    expect(await (await fleet.queue.getJob('default.unpaid'))?.getState()).toBe('waiting-children');
  });

  it('has said each hold once and rejected nothing', async () => {
    for (const server of ['misspelt', 'dead', 'fickle', 'paid']) {
      expect(said(server, 'server.held')).toHaveLength(1);
      expect(said(server, 'server.released')).toEqual([]);
    }
    expect(said('apify', 'tool.held')).toHaveLength(1);
    expect(await fleet.queue.getJobCounts('completed', 'failed')).toEqual({ completed: 1, failed: 0 });
  });

  it('goes on by itself when the token is accepted and the Actor exists', async () => {
    real.stub.tokens = null;
    real.stub.publish({ ...defaultActor, name: 'published-later' });
    const held = ['missing', 'misspelt', 'dead', 'under-way', ...backlog];
    for (const id of held) {
      expect(await fleet.outcome(id, 40_000)).toMatchObject({ outcome: 'succeeded', items: 2, attempt: 1 });
      expect(startsOf(id)).toHaveLength(1);
    }
  });
});
