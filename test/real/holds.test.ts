import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { WorkerContext } from '../../workers/context.js';
import { probeServer } from '../../workers/probes.js';
import { defaultTiming } from '../../workers/timing.js';
import { Fleet } from '../workers/fleet.js';
import { defaultActor } from './apify-api-stub.js';
import { RealApifyServer } from './apify-server.js';

const tool = 'acme/yellowpages-scraper';
/** Unknown to the API at first. */
const late = 'acme/published-later';
const backlog = ['backlog-1', 'backlog-2', 'backlog-3', 'backlog-4', 'backlog-5'];
/** Through the Actor's own tool a refused token proves nothing: these are looked for before they start again. */
const direct = ['direct-1', 'direct-2'];

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
    direct: { ...good, token: 'fickle-token', tools: [tool], via: 'direct' },
    dead: { ...good, token: 'dead-token', tools: ['acme/unseen'] },
    paid: { ...good, tools: ['acme/paid'], via: 'direct' },
  });
  const timing = { ...defaultTiming, sweepEveryMs: 1_000, probeEveryMs: 3_000, reapEveryMs: 2_000 };
  ({ ctx } = await fleet.daemon({ timing: { ...timing, certainAfterMs: 5_000 } }));
  // The answer to the server's call is lost; it asks again by itself. Found later, when the run is old enough.
  stub.failNext({ on: 'POST /v2/actors/', resetAfterEffect: true });
  await job('twice', 'apify', tool, { durationSecs: 600 });
  await vi.waitFor(() => expect(startsOf('twice')).toHaveLength(2), 60_000);
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
    }, 60_000);
    expect(await fleet.outcome('beside', 60_000)).toMatchObject({ outcome: 'succeeded', items: 2 });
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
    }, 60_000);
  });

  it('holds a server whose token was revoked with a run under way and a backlog', async () => {
    await job('under-way', 'fickle', tool, { durationSecs: 2 });
    await vi.waitFor(() => expect(startsOf('under-way')).toHaveLength(1), 60_000);
    real.stub.tokens = new Set(['good-token']);
    await Promise.all(backlog.map((id) => job(id, 'fickle', tool)));
    const poll = new RegExp(`^GET /v2/actor-runs/${startsOf('under-way')[0]?.runId} 401$`);
    await vi.waitFor(() => expect(asked(poll).length).toBeGreaterThan(1), 60_000);
    await Promise.all(direct.map((id) => job(id, 'direct', tool)));
    for (const server of ['fickle', 'direct']) {
      await vi.waitFor(async () => {
        expect(await serverHold(server)).toMatchObject({
          reason: 'auth',
          message: expect.stringMatching(/authentication token is not valid/),
        });
      }, 60_000);
    }
  });

  it('is not fooled by a list of tools that the server remembers', async () => {
    const [starts, lists] = [/^POST .* 401$/, /^GET \/v2\/actor-runs 401$/];
    const [started, listed] = [asked(starts).length, asked(lists).length];
    await probeServer(ctx, 'fickle');
    expect(asked(lists).length).toBeGreaterThan(listed);
    expect(asked(starts)).toHaveLength(started);
    expect(await serverHold('fickle')).toMatchObject({ reason: 'auth' });
  });

  it('holds a server that asks for money', async () => {
    real.stub.failNext({ on: 'POST /v2/actors/acme~paid', status: 402, message: 'Payment required' });
    await job('unpaid', 'paid', 'acme/paid');
    await vi.waitFor(
      async () => expect(await serverHold('paid')).toMatchObject({ reason: 'payment' }),
      60_000,
    );
    expect(startsOf('unpaid')).toEqual([]);
    expect(await (await fleet.queue.getJob('default.unpaid'))?.getState()).toBe('waiting-children');
  });

  it('lets a start through to a server that asked for money, and goes on when it is taken', async () => {
    await ctx.redis.hset(ctx.keys.server('paid'), 'probeAt', Date.now());
    expect(await fleet.outcome('unpaid', 60_000)).toMatchObject({ outcome: 'succeeded', items: 2 });
    expect(await serverHold('paid')).toBeNull();
    expect(said('paid', 'server.released')).toHaveLength(1);
  });

  it('has said each hold once and rejected nothing', async () => {
    for (const server of ['misspelt', 'dead', 'fickle', 'direct']) {
      expect(said(server, 'server.held')).toHaveLength(1);
      expect(said(server, 'server.released')).toEqual([]);
    }
    expect(said('paid', 'server.held')).toHaveLength(1);
    expect(said('apify', 'tool.held')).toHaveLength(1);
    expect(await fleet.queue.getJobCounts('completed', 'failed')).toEqual({ completed: 2, failed: 0 });
  });

  it('goes on by itself when the token is accepted and the Actor exists', async () => {
    real.stub.tokens = null;
    real.stub.publish({ ...defaultActor, name: 'published-later' });
    const held = ['missing', 'misspelt', 'dead', 'under-way', ...backlog, ...direct];
    for (const id of held) {
      expect(await fleet.outcome(id, 100_000)).toMatchObject({ outcome: 'succeeded', items: 2, attempt: 1 });
      expect(startsOf(id)).toHaveLength(1);
    }
  });

  it('ends the second run that the server made of one call, and that run alone', async () => {
    const aborts = () => real.stub.ledger.aborts.map(({ runId }) => runId);
    await vi.waitFor(() => expect(aborts()).toHaveLength(1), 60_000);
    await ctx.cancel('default.twice');
    const { outcome, runId } = await fleet.outcome('twice', 60_000);
    expect(outcome).toBe('cancelled');
    expect(aborts()).toEqual([startsOf('twice').find((start) => start.runId !== runId)?.runId, runId]);
    expect(real.stub.active).toEqual([]);
  });
});
