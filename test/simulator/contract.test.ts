import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { catalogue, type Sim, startSim, toolNameOf } from '../sim/index.js';
import { RawClient, until } from './client.js';

/** Row by row what the contract says of the real server and no recording shows. */
const acme = 'acme/yellowpages-scraper';
const maps = 'compass/crawler-google-places';
const all = `${acme},${maps},call-actor,runs,storage`;

let sim: Sim;
let client: RawClient;
beforeAll(async () => {
  sim = await startSim({ conditions: { mix: 'fixed' } });
});
beforeEach(async () => {
  sim.reset({ sessions: true });
  client = await RawClient.connect(sim.url, { tools: all });
});
afterAll(() => sim.close());

const poll = async (runId: string, args: object = { waitSecs: 0 }) =>
  (await client.call('get-actor-run', { runId, ...args })).result;
const run = (steering: object, options?: object) => client.start(maps, { sim: steering }, options);

describe('tools', () => {
  const helpers = ['get-actor-run', 'get-dataset-items', 'get-key-value-store-record', 'abort-actor-run'];
  it.each([
    ['?tools=acme/yellowpages-scraper', ['acme--yellowpages-scraper', ...helpers]],
    ['?tools=acme~yellowpages-scraper', ['acme--yellowpages-scraper', ...helpers]],
    ['?actors=acme/yellowpages-scraper', ['acme--yellowpages-scraper', ...helpers]],
    ['?tools=call-actor', ['call-actor', ...helpers]],
    [
      '?tools=acme/yellowpages-scraper,call-actor,runs',
      [
        'call-actor',
        'get-actor-run',
        'get-dataset-items',
        'get-key-value-store-record',
        'abort-actor-run',
        'get-actor-run-list',
        'get-actor-run-log',
        'acme--yellowpages-scraper',
      ],
    ],
    ['?tools=storage', ['get-dataset', 'get-dataset-items', 'get-key-value-store-record']],
    ['?tools=acme/no-such-actor', []],
    ['?tools=acme--yellowpages-scraper', []],
    ['?tools=get-actor-log', []],
    ['?tools=', []],
    ['', ['call-actor', ...helpers, 'apify--rag-web-browser']],
  ])('%s lists %j', async (query, names) => {
    const other = await RawClient.connect(sim.url, { query });
    expect((await other.tools()).map((tool) => tool.name)).toEqual(names);
  });

  it('names Actors as the real server does', () => {
    expect(toolNameOf('john.doe/my-actor')).toBe('john-dot-doe--my-actor');
    const long = toolNameOf(`acme/${'x'.repeat(80)}`);
    expect(long).toMatch(/^acme--x+-[0-9a-f]{4}$/);
    expect(long).toHaveLength(64);
  });

  it('takes every example job as it is, through both ways of starting', async () => {
    const jobs = readFileSync(new URL('jobs.ndjson', import.meta.url), 'utf8')
      .trim()
      .split('\n');
    expect(jobs.length).toBeGreaterThan(10);
    const names = catalogue.map(({ name }) => name).join(',');
    const everything = await RawClient.connect(sim.url, { tools: `${names},call-actor` });
    for (const line of jobs) {
      const { tool, input } = JSON.parse(line);
      const runId = await everything.start(tool, input, { memory: 1024, timeout: 600 });
      const kept = await everything.call('get-key-value-store-record', {
        keyValueStoreId: `kv${runId}`,
        recordKey: 'INPUT',
      });
      expect(kept.result.structuredContent.value).toEqual(input);
      const direct = await everything.call(toolNameOf(tool), { ...input, waitSecs: 0 });
      expect(direct.result.isError).toBe(false);
    }
  });
});

describe('arguments', () => {
  it.each([
    ['get-actor-run', { runId: 'x', waitSecs: 46 }, '/waitSecs: must be <= 45'],
    ['get-actor-run', { runId: 'x', waitSecs: 10.5 }, '/waitSecs: must be integer'],
    ['get-actor-run', {}, "root: must have required property 'runId'"],
    ['get-actor-run', undefined, 'Missing arguments for tool "get-actor-run"'],
    ['get-dataset-items', { datasetId: 'x', limit: 0 }, '/limit: must be >= 1'],
    ['get-actor-run-list', { limit: 11 }, '/limit: must be <= 10'],
    ['call-actor', { actor: acme }, "root: must have required property 'input'"],
    [
      'call-actor',
      { actor: acme, input: {}, callOptions: { memory: 1 } },
      '/callOptions/memory: must be >= 128',
    ],
    ['acme--yellowpages-scraper', {}, "root: must have required property 'location'"],
    ['nothing', {}, 'Tool "nothing" was not found'],
  ])('%s %j is -32602', async (name, args, text) => {
    const { error } = await client.call(name, args);
    expect(error?.code).toBe(-32602);
    expect(error?.message).toContain(text);
  });

  it('coerces types and drops unknown keys: a misspelt waitSecs means the default', async () => {
    const runId = await run({ runSecs: 60, items: 37, readySecs: 0 });
    const waiting = client.call('get-actor-run', { runId, waitSec: 0 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    sim.finish(runId);
    expect((await waiting).result.structuredContent.status).toBe('SUCCEEDED');
    const page = await client.call('get-dataset-items', {
      datasetId: `ds${runId}`,
      limit: '10',
      offset: '5',
    });
    expect(page.result.structuredContent).toMatchObject({ itemCount: 10, offset: 5, limit: 10 });
  });

  it('ignores run options given to a direct tool, and keeps undeclared input', async () => {
    const name = toolNameOf(maps);
    const answer = await client.call(name, {
      waitSecs: 0,
      memory: 128,
      myField: { a: [1] },
      sim: { runSecs: 9 },
    });
    const runId = answer.result.structuredContent.runId;
    const kept = await client.call('get-key-value-store-record', {
      keyValueStoreId: `kv${runId}`,
      recordKey: 'INPUT',
    });
    expect(kept.result.structuredContent.value).toEqual({
      memory: 128,
      myField: { a: [1] },
      sim: { runSecs: 9 },
    });
    expect(sim.stats().memoryMb).toBe(4096);
  });
});

describe('runs', () => {
  it('go READY, RUNNING, final, with growing counts', async () => {
    const runId = await run({ readySecs: 2, runSecs: 10, items: 100, usageUsd: 0.5 });
    const at = async (ms: number) => {
      sim.advance(ms);
      return poll(runId);
    };
    expect((await at(1000)).structuredContent).toMatchObject({ status: 'READY' });
    const running = (await at(4000)).structuredContent;
    expect(running.status).toBe('RUNNING');
    expect(running.storages.datasets.default.itemCount).toBeGreaterThanOrEqual(50);
    expect(running.summary).toMatch(/^RUNNING for 5s\. In progress\. 5\d results so far\.$/);
    const done = await at(6000);
    expect(done.structuredContent).toMatchObject({ status: 'SUCCEEDED', exitCode: 0 });
    expect(done.structuredContent.storages.datasets.default.itemCount).toBe(100);
    expect(done._meta['com.apify/ActorRun'].usageTotalUsd).toBe(0.5);
  });

  it('call-actor with waitSecs 0 answers READY with the run id, without usage, even for the shortest run', async () => {
    const answer = await client.call('call-actor', {
      actor: maps,
      input: { sim: { runSecs: 0 } },
      waitSecs: 0,
    });
    expect(answer.result.structuredContent.status).toBe('READY');
    expect(answer.result._meta).toBeUndefined();
    expect((await poll(answer.result.structuredContent.runId)).structuredContent.status).toBe('SUCCEEDED');
  });

  it('usage is absent when the API gives none', async () => {
    const runId = await run({ runSecs: 0, items: 1, usageUsd: null });
    expect((await poll(runId))._meta).toBeUndefined();
  });

  it.each([
    ['zero', 0, 0, 0],
    ['short', 22, 22, 22],
    ['count', 0, 0, 37],
  ])('item counts lag (%s)', async (lagMode, itemCount, total, readable) => {
    const runId = await run({ runSecs: 1, items: 37, lagSecs: 3, lagMode });
    const seen = async () => ({
      itemCount: (await poll(runId)).structuredContent.storages.datasets.default.itemCount,
      page: (await client.call('get-dataset-items', { datasetId: `ds${runId}`, limit: 1000 })).result
        .structuredContent,
    });
    sim.advance(1500);
    const early = await seen();
    expect([early.itemCount, early.page.totalItemCount, early.page.itemCount]).toEqual([
      itemCount,
      total,
      readable,
    ]);
    sim.advance(3000);
    const late = await seen();
    expect([late.itemCount, late.page.totalItemCount, late.page.itemCount]).toEqual([37, 37, 37]);
  });

  it('a poll that waits probes a success that reads 0 until the lag is over', async () => {
    const fast = await startSim({ speed: 100 });
    const other = await RawClient.connect(fast.url, { tools: all });
    const runId = await other.start(maps, { sim: { runSecs: 0, items: 5, lagSecs: 0.02 } });
    const waited = (await other.call('get-actor-run', { runId, waitSecs: 5 })).result.structuredContent;
    expect(waited.storages.datasets.default.itemCount).toBe(5);
    await fast.close();
  });

  it('the count is absent when the metadata cannot be read', async () => {
    const runId = await run({ runSecs: 0, items: 5, noItemCount: true });
    expect((await poll(runId)).structuredContent.storages.datasets.default).toEqual({ id: `ds${runId}` });
  });

  it.each(['FAILED', 'TIMED-OUT', 'ABORTED'])(
    '%s arrives with isError false, and its items can be read',
    async (status) => {
      const runId = await run({ runSecs: 0, items: 4, status });
      const answer = await poll(runId);
      expect(answer.isError).toBe(false);
      expect(answer.structuredContent.status).toBe(status);
      const page = await client.call('get-dataset-items', { datasetId: `ds${runId}` });
      expect(page.result.structuredContent.itemCount).toBe(4);
    },
  );

  it('the run timeout ends a run, TIMING-OUT first', async () => {
    const runId = await run({ runSecs: 100, items: 100, timingOutSecs: 3 }, { timeout: 10 });
    sim.advance(8000);
    expect((await poll(runId)).structuredContent.status).toBe('TIMING-OUT');
    sim.advance(2500);
    const answer = (await poll(runId)).structuredContent;
    expect(answer.status).toBe('TIMED-OUT');
    expect(answer.storages.datasets.default.itemCount).toBe(10);
  });

  it('the platform aborts a run that reaches maxTotalChargeUsd', async () => {
    const runId = await run({ runSecs: 10, items: 100, usageUsd: 2 }, { maxTotalChargeUsd: 0.5 });
    sim.advance(3000);
    const answer = await poll(runId);
    expect(answer.structuredContent.status).toBe('ABORTED');
    expect(answer._meta['com.apify/ActorRun'].usageTotalUsd).toBe(0.5);
  });

  it('other datasets have aliases, ids and items of their own', async () => {
    const runId = await run({ runSecs: 0, items: 0, otherDatasets: { reviews: 12 } });
    const { datasets } = (await poll(runId)).structuredContent.storages;
    expect(datasets.default.itemCount).toBe(0);
    expect(datasets.reviews.itemCount).toBe(12);
    const page = await client.call('get-dataset-items', { datasetId: datasets.reviews.id, limit: 100 });
    expect(page.result.structuredContent.items).toHaveLength(12);
    expect(page.result.structuredContent.items[3]).toMatchObject({ _i: 3, _run: runId, _dataset: 'reviews' });
  });

  it('an abort can linger in ABORTING; a second one has no effect', async () => {
    const runId = await run({ runSecs: 100, abortSecs: 5 });
    const abort = async () => (await client.call('abort-actor-run', { runId })).result;
    expect((await abort()).structuredContent.status).toBe('ABORTING');
    sim.advance(2000);
    expect((await abort()).structuredContent.status).toBe('ABORTING');
    sim.advance(3500);
    const last = await abort();
    expect(last.structuredContent.status).toBe('ABORTED');
    expect(last._meta).toBeUndefined();
    expect(sim.ledger.count('abort')).toBe(3);
  });

  it('an abort wakes a waiting poll', async () => {
    const runId = await run({ runSecs: 100 });
    const waiting = poll(runId, { waitSecs: 45 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    await client.call('abort-actor-run', { runId });
    expect((await waiting).structuredContent.status).toBe('ABORTED');
  });

  it('a cancelled poll leaves the run alone', async () => {
    const runId = await run({ runSecs: 100 });
    const params = { name: 'get-actor-run', arguments: { runId, waitSecs: 45 } };
    const waiting = client.post({ jsonrpc: '2.0', id: 'p', method: 'tools/call', params });
    await new Promise((resolve) => setTimeout(resolve, 20));
    await client.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'p' } });
    expect((await waiting).messages).toEqual([]);
    expect((await poll(runId)).structuredContent.status).toBe('RUNNING');
  });

  it('a connection cut in the middle of a start leaves the run going', async () => {
    const controller = new AbortController();
    const params = {
      name: 'call-actor',
      arguments: { actor: maps, input: { sim: { runSecs: 50 } }, waitSecs: 45 },
    };
    const gone = client.post(
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
      { signal: controller.signal },
    );
    await until(() => sim.ledger.starts().length === 1, 'the run is there');
    controller.abort();
    await expect(gone).rejects.toThrow();
    expect(sim.stats()).toMatchObject({ inFlight: 1, cancelled: 0 });
  });

  it('lists all runs of the account in slices of at most 10, by status too', async () => {
    for (let i = 0; i < 13; i++) await run({ runSecs: i < 4 ? 0 : 100 });
    const list = async (args: object) =>
      (await client.call('get-actor-run-list', args)).result.structuredContent;
    const first = await list({ limit: 10, desc: true });
    const second = await list({ limit: 10, offset: 10, desc: true });
    const ids = [...first.items, ...second.items].map((row: { id: string }) => row.id);
    expect(first.total).toBe(13);
    expect(ids).toEqual([...ids].sort().reverse());
    expect(new Set(ids).size).toBe(13);
    expect((await list({ status: 'SUCCEEDED' })).count).toBe(4);
    expect((await list({ offset: 50 })).items).toEqual([]);
  });

  it('serves dataset metadata and the log', async () => {
    const runId = await run({ runSecs: 0, items: 3, statusMessage: 'All done.' });
    const dataset = await client.call('get-dataset', { datasetId: `ds${runId}` });
    expect(dataset.result.structuredContent).toMatchObject({ id: `ds${runId}`, itemCount: 3 });
    const log = await client.call('get-actor-run-log', { runId, lines: 2 });
    expect(log.result.structuredContent.log.split('\n')).toHaveLength(2);
    expect(log.result.structuredContent.log).toContain('All done.');
  });
});

describe('records', () => {
  it.each([
    [
      'JSON',
      { a: 1 },
      (r: Answer) =>
        expect(r.structuredContent).toMatchObject({ value: { a: 1 }, contentType: 'application/json' }),
    ],
    ['text', 'plain', (r: Answer) => expect(r.structuredContent.value).toBe('plain')],
    [
      'an image',
      { contentType: 'image/png', base64: 'iVBORw==' },
      (r: Answer) => expect(r.content[0]).toEqual({ type: 'image', data: 'iVBORw==', mimeType: 'image/png' }),
    ],
    [
      'audio',
      { contentType: 'audio/ogg', bytes: 3 },
      (r: Answer) => expect(r.content[0]?.type).toBe('audio'),
    ],
    [
      'a file of 256 KiB',
      { contentType: 'application/zip', bytes: 262_144 },
      (r: Answer) => expect(Buffer.from(r.content[0]?.resource?.blob ?? '', 'base64')).toHaveLength(262_144),
    ],
    [
      'a larger one as a link',
      { contentType: 'application/zip', bytes: 262_145 },
      (r: Answer) => expect(r.content[0]).toMatchObject({ type: 'resource_link', size: 262_145 }),
    ],
  ])('%s', async (_, value, check) => {
    const runId = await run({ runSecs: 0, records: { KEY: value } });
    expect((await poll(runId)).structuredContent.storages.keyValueStores.default.keys).toEqual([
      'INPUT',
      'KEY',
    ]);
    check(
      (await client.call('get-key-value-store-record', { keyValueStoreId: `kv${runId}`, recordKey: 'KEY' }))
        .result,
    );
  });
});

interface Answer {
  readonly structuredContent: Record<string, unknown>;
  readonly content: readonly { readonly type: string; readonly resource?: { readonly blob: string } }[];
}

describe('HTTP', () => {
  it('wants a session: 400 without, 404 with code -32001 for an unknown one', async () => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const none = await new RawClient(sim.url).post(ping);
    expect(none.status).toBe(400);
    const lost = await new RawClient(sim.url, { session: 'gone' }).post(ping);
    expect([lost.status, JSON.parse(lost.body).error.code]).toEqual([404, -32001]);
    expect((await client.post(ping)).messages[0]?.result).toEqual({});
  });

  it('ends a session on DELETE, and runs outlive it', async () => {
    const runId = await run({ runSecs: 100 });
    expect(await client.send('DELETE')).toBe(200);
    expect((await client.post({ jsonrpc: '2.0', id: 1, method: 'ping' })).status).toBe(404);
    client = await RawClient.connect(sim.url, { tools: all });
    expect((await poll(runId)).structuredContent.status).toBe('RUNNING');
  });

  it('has no standing stream unless told to', async () => {
    expect(await client.send('GET')).toBe(405);
  });

  it.each([
    ['not JSON', '{', 400, -32700],
    ['a batch', '[]', 400, -32600],
    ['no method', '{"jsonrpc":"2.0","id":1}', 400, -32600],
    ['null', 'null', 400, -32700],
  ])('%s is refused', async (_, body, status, code) => {
    const reply = await client.post(body);
    expect([reply.status, JSON.parse(reply.body).error.code]).toEqual([status, code]);
  });

  it('answers as a stream or as JSON', async () => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    expect((await client.post(ping)).headers['content-type']).toBe('text/event-stream');
    sim.set({ answers: 'json' });
    expect((await client.post(ping)).headers['content-type']).toBe('application/json');
  });

  it('accepts notifications with 202 and unknown methods with -32601', async () => {
    expect((await client.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202);
    const unknown = await client.post({ jsonrpc: '2.0', id: 1, method: 'resources/list' });
    expect(unknown.messages[0]?.error?.code).toBe(-32601);
  });
});
