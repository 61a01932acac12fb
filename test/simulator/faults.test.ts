import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type RefusalName, refusalNames, type Sim, startSim } from '../sim/index.js';
import { RawClient, until } from './client.js';

const acme = 'acme/yellowpages-scraper';
const direct = 'acme--yellowpages-scraper';
let sim: Sim;
let client: RawClient;
beforeAll(async () => {
  sim = await startSim({ conditions: { mix: 'fixed' } });
});
beforeEach(async () => {
  sim.reset({ sessions: true });
  client = await RawClient.connect(sim.url, { tools: `${acme},call-actor,runs` });
});
afterAll(() => sim.close());

const callActor = (steering: object) =>
  client.call('call-actor', { actor: acme, input: { location: 'x', sim: steering }, waitSecs: 0 });
const post = (params: object, signal?: AbortSignal) =>
  client.post(
    { jsonrpc: '2.0', id: 5, method: 'tools/call', params },
    signal === undefined ? {} : { signal },
  );
const startParams = (steering: object) => ({
  name: 'call-actor',
  arguments: { actor: acme, input: { location: 'x', sim: steering }, waitSecs: 0 },
});

describe('refusals', () => {
  const types: Readonly<Partial<Record<RefusalName, string>>> = {
    usage: 'not-enough-usage-to-run-paid-actor',
    platform_feature: 'platform-feature-disabled',
    concurrency: 'concurrent-runs-limit-exceeded',
    cannot_start: 'cannot-start-actor-runs',
    memory: 'memory-limit-exceeded',
    actor_memory: 'actor-memory-limit-exceeded',
    auth: 'user-or-token-not-found',
    permissions: 'insufficient-permissions',
    not_rented: 'actor-is-not-rented',
    not_approved: 'full-permission-actor-not-approved',
    disabled: 'actor-disabled',
    public_disabled: 'public-actor-disabled',
    min_charge: 'max-total-charge-usd-below-minimum',
  };
  it.each(refusalNames)('%s: with the code and as a bare sentence, both ways of starting', async (refuse) => {
    for (const refuseBare of [false, true]) {
      const answers = [
        await callActor({ refuse, refuseBare }),
        await client.call(direct, { location: 'x', waitSecs: 0, sim: { refuse, refuseBare } }),
      ];
      for (const { result } of answers) {
        expect(result.isError).toBe(true);
        const text = result.content.map((block: { text: string }) => block.text).join('\n');
        const type = types[refuse];
        if (type !== undefined) expect(text.includes(type)).toBe(!refuseBare);
      }
    }
    expect(sim.ledger.count('start')).toBe(0);
    expect(sim.ledger.entries({ kind: ['refused'] }).map(({ reason }) => reason)).toEqual(
      Array(4).fill(refuse),
    );
  });

  it('can pass after some times', async () => {
    const steering = { refuse: 'concurrency', refuseTimes: 2 };
    const errors = [];
    for (let i = 0; i < 3; i++) errors.push((await callActor(steering)).result.isError);
    expect(errors).toEqual([true, true, false]);
  });

  it('come from the account: runs, memory, a tool', async () => {
    sim.set({ maxRuns: 2 });
    for (let i = 0; i < 2; i++) expect((await callActor({ runSecs: 100 })).result.isError).toBe(false);
    expect((await callActor({ runSecs: 100 })).result.content[0].text).toContain(
      'concurrent-runs-limit-exceeded',
    );
    sim.set({ maxRuns: null, memoryMb: 2048 });
    expect((await callActor({ runSecs: 100 })).result.content[0].text).toContain('memory-limit-exceeded');
    sim.advance(200_000);
    sim.set({ refusals: { [acme]: 'not_rented' }, refuseBare: true });
    expect((await callActor({})).result.content[0].text).toContain('You must rent a paid Actor');
    expect(sim.stats()).toMatchObject({ starts: 2, refused: 3, maxInFlight: 2, inFlight: 0 });
  });

  it('a misspelt wish is an error that names it', async () => {
    expect((await callActor({ runSec: 1 })).result.content[0].text).toContain("unknown key 'runSec'");
    expect((await callActor({ items: -1 })).result.content[0].text).toContain('sim.items');
  });
});

describe('the world changes', () => {
  it.each([
    ['http_401', 401],
    ['tool_error', 'User was not found or authentication token is not valid'],
    ['not_found', "Actor 'acme/yellowpages-scraper' was not found"],
    ['empty_tools', 'Available tools: none'],
  ] as const)('a revoked token shows as %s', async (authMode, sign) => {
    sim.set({ tokens: ['new'], authMode });
    const reply = await post(startParams({}));
    if (typeof sign === 'number') expect(reply.status).toBe(sign);
    else expect(reply.body).toContain(sign);
    expect(sim.ledger.count('start')).toBe(0);
    if (authMode === 'empty_tools') expect(await client.tools()).toEqual([]);
    const renewed = await RawClient.connect(sim.url, { tools: 'call-actor', token: 'new' });
    expect(await renewed.start(acme, { location: 'x' })).toMatch(/^run/);
  });

  it('no token at all is 401 with a challenge', async () => {
    const reply = await new RawClient(sim.url, { token: null }).post({
      jsonrpc: '2.0',
      id: 1,
      method: 'ping',
    });
    expect(reply.status).toBe(401);
    expect(reply.headers['www-authenticate']).toContain('Bearer');
  });

  it('a tool turns empty, another fails', async () => {
    sim.set({ emptyTools: [acme] });
    const runId = (await callActor({ runSecs: 0, items: 9 })).result.structuredContent.runId;
    const page = await client.call('get-dataset-items', { datasetId: `ds${runId}` });
    expect(page.result.structuredContent.totalItemCount).toBe(0);
    sim.set({ emptyTools: [], failingTools: [acme] });
    const failed = (await callActor({ runSecs: 0 })).result.structuredContent.runId;
    const answer = await client.call('get-actor-run', { runId: failed, waitSecs: 0 });
    expect(answer.result.structuredContent.status).toBe('FAILED');
  });

  it('schemas change: -32602 from tools, bad input through call-actor, and the list shows it', async () => {
    sim.set({ changedSchemas: [acme, 'get-dataset-items'] });
    expect((await client.call(direct, { location: 'x' })).error?.code).toBe(-32602);
    expect((await client.call('get-dataset-items', { datasetId: 'x' })).error?.code).toBe(-32602);
    expect((await callActor({})).result.content[2].text).toContain(
      "must have required property 'schemaVersion'",
    );
    const tool = (await client.tools()).find(({ name }) => name === direct);
    expect(tool.inputSchema.required).toContain('schemaVersion');
  });

  it('the tools list turns empty, a helper disappears, the cap on waitSecs shrinks', async () => {
    sim.set({ hiddenTools: ['get-actor-run-list'] });
    expect((await client.tools()).map(({ name }) => name)).not.toContain('get-actor-run-list');
    sim.set({ waitSecsCap: 10 });
    const error = (await client.call('get-actor-run', { runId: 'x', waitSecs: 11 })).error;
    expect(error?.message).toContain('/waitSecs: must be <= 10');
    sim.set({ toolsListEmpty: true });
    expect(await client.tools()).toEqual([]);
  });

  it('a proxy strips structuredContent, or the JSON text too', async () => {
    sim.set({ strip: 'structured' });
    const left = (await callActor({})).result;
    expect(left.structuredContent).toBeUndefined();
    expect(JSON.parse(left.content[0].text).status).toBe('READY');
    sim.set({ strip: 'json' });
    expect((await callActor({})).result.content[0].text).toMatch(/^READY\. Run run\d+ was created/);
  });

  it('sessions are lost together, a rate limit holds, bodies over 100 KB get 413 in HTML when switched on', async () => {
    expect(sim.dropSessions()).toBe(1);
    expect((await post(startParams({}))).status).toBe(404);
    client = await RawClient.connect(sim.url, { tools: 'call-actor' });
    sim.set({ bodyLimit: 100 * 1024 });
    const large = await post(startParams({ statusMessage: 'x' }));
    expect(large.status).toBe(200);
    const tooLarge = await client.post('x'.repeat(102_401));
    expect([tooLarge.status, tooLarge.headers['content-type']]).toEqual([413, 'text/html; charset=utf-8']);
    sim.set({ requestsPerSecond: 2, retryAfterSecs: 7 });
    const replies = await Promise.all(Array.from({ length: 5 }, () => post(startParams({}))));
    const limited = replies.filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThanOrEqual(2);
    expect(limited[0]?.headers['retry-after']).toBe('7');
  });

  it('is down for a while, on the same port', async () => {
    const downed = sim.down(50);
    await expect(post(startParams({}))).rejects.toThrow();
    await downed;
    expect((await post(startParams({}))).status).toBe(200);
  });
});

describe('faults before the work leave nothing behind', () => {
  it.each([
    ['http_401', 401],
    ['http_403', 403],
    ['http_404', 404],
    ['session_lost', 404],
    ['http_429', 429],
    ['http_500', 500],
    ['http_502', 502],
    ['http_503', 503],
    ['http_413', 413],
    ['http_302', 302],
    ['accepted', 202],
  ] as const)('%s', async (fault, status) => {
    expect((await post(startParams({ fault }))).status).toBe(status);
    expect(sim.ledger.count('start')).toBe(0);
    if (fault === 'session_lost') client = await RawClient.connect(sim.url, { tools: 'call-actor' });
    // Struck once: the same input gets through the next time.
    expect((await post(startParams({ fault }))).messages[0]?.result.isError).toBe(false);
  });

  it.each([
    ['rpc_invalid_params', -32602],
    ['rpc_internal', -32603],
  ] as const)('%s', async (fault, code) => {
    expect((await callActor({ fault })).error?.code).toBe(code);
    expect(sim.ledger.count('start')).toBe(0);
  });

  it('reset_before and hang', async () => {
    await expect(post(startParams({ fault: 'reset_before' }))).rejects.toThrow();
    const controller = new AbortController();
    const hanging = post(startParams({ fault: 'hang' }), controller.signal);
    await until(() => (sim.faults.fired.get('hang') ?? 0) === 1, 'it hangs');
    controller.abort();
    await expect(hanging).rejects.toThrow();
    expect(sim.ledger.count('start')).toBe(0);
  });
});

describe('faults after the work leave a run behind', () => {
  it.each(['reset_after', 'cut'] as const)('%s breaks the connection', async (fault) => {
    await expect(post(startParams({ fault }))).rejects.toThrow();
    expect(sim.ledger.count('start')).toBe(1);
  });

  it('drop_after never answers', async () => {
    const controller = new AbortController();
    const hanging = post(startParams({ fault: 'drop_after' }), controller.signal);
    await until(() => sim.ledger.count('start') === 1, 'the run is there');
    controller.abort();
    await expect(hanging).rejects.toThrow();
  });

  it.each(['sse', 'json'] as const)('spoilt answers (%s)', async (answers) => {
    sim.set({ answers, hugeBytes: 100_000 });
    const spoilt = async (fault: string) => post(startParams({ fault, statusMessage: answers }));
    expect((await spoilt('http_500_after')).status).toBe(500);
    expect((await spoilt('not_json')).messages).toEqual([]);
    expect((await spoilt('cut_end')).messages).toEqual([]);
    expect((await spoilt('huge')).body.length).toBeGreaterThan(100_000);
    expect((await spoilt('wrong_shape')).messages[0]?.result.content).toBe('a string');
    expect((await spoilt('wrong_id')).messages[0]?.id).toBe('nobody-asked');
    expect((await spoilt('task_result')).messages[0]?.result.task.status).toBe('working');
    expect((await spoilt('run_id_lost')).messages[0]?.result).toMatchObject({ isError: true });
    expect((await spoilt('no_structured')).messages[0]?.result.structuredContent).toBeUndefined();
    expect((await spoilt('sentence_only')).messages[0]?.result.content).toHaveLength(1);
    expect(sim.ledger.count('start')).toBe(10);
  });

  it('double_run makes two runs of one call and answers with the second', async () => {
    const answer = await callActor({ fault: 'double_run', runSecs: 100 });
    const starts = sim.ledger.starts(acme);
    expect(starts.map(({ double }) => double)).toEqual([undefined, true]);
    expect(answer.result.structuredContent.runId).toBe(starts[1]?.runId);
    expect(starts[0]?.call).toBe(starts[1]?.call);
  });
});

describe('faults by rule', () => {
  it('strike polls, reads and aborts of a run that asked for them', async () => {
    const faults = [
      { op: 'poll', kind: 'unauthorized', times: 2 },
      { op: 'read', kind: 'http_503' },
      { op: 'abort', kind: 'tool_error' },
      { op: 'poll', kind: 'run_not_found' },
    ];
    const runId = (await callActor({ runSecs: 100, faults })).result.structuredContent.runId;
    const poll = async () => (await client.call('get-actor-run', { runId, waitSecs: 0 })).result;
    expect((await poll()).content[0].text).toContain('verify the run ID');
    expect((await poll()).content[0].text).toContain('User was not found');
    expect((await poll()).content[0].text).toBe(`Run with ID '${runId}' not found.`);
    expect((await poll()).structuredContent.status).toBe('RUNNING');
    const read = { name: 'get-dataset-items', arguments: { datasetId: `ds${runId}` } };
    expect((await post(read)).status).toBe(503);
    expect((await post(read)).status).toBe(200);
    expect((await client.call('abort-actor-run', { runId })).result.isError).toBe(true);
    expect((await client.call('abort-actor-run', { runId })).result.structuredContent.status).toBe('ABORTED');
  });

  it('with spacing leave calls between them unhurt, however many wait', async () => {
    for (const kind of ['http_500', 'http_502', 'http_503'] as const)
      sim.faults.add({ kind, op: 'start', times: 1, spacing: 2 });
    const statuses = [];
    for (let i = 0; i < 8; i++) statuses.push((await post(startParams({}))).status);
    expect(statuses).toEqual([500, 200, 200, 502, 200, 200, 503, 200]);
  });

  it('are the next N, or by chance, by operation and Actor, and counted', async () => {
    sim.faults.next('http_500', 'start', 2);
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push((await post(startParams({}))).status);
    expect(statuses).toEqual([500, 500, 200]);
    const rule = sim.faults.add({
      kind: 'http_429',
      op: 'start',
      actor: acme,
      probability: 0.3,
      retryAfter: 'date',
    });
    let limited = 0;
    for (let i = 0; i < 100; i++) if ((await post(startParams({}))).status === 429) limited += 1;
    expect(limited).toBeGreaterThan(15);
    expect(limited).toBeLessThan(50);
    expect(sim.faults.fired.get('http_429')).toBe(limited);
    sim.faults.clear(rule);
    expect((await post(startParams({}))).status).toBe(200);
    expect(() => sim.faults.add({ kind: 'nonsense' as 'hang' })).toThrow();
  });

  it('hit connecting and listing too', async () => {
    sim.faults.next('http_503', 'connect');
    expect((await new RawClient(sim.url).initialize()).status).toBe(503);
    sim.faults.next('rpc_internal', 'list_tools');
    const reply = await client.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    expect(reply.messages[0]?.error?.code).toBe(-32603);
  });
});
