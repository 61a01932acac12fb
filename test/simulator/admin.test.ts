import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type LedgerEntry, type Sim, type SimStats, startSim } from '../sim/index.js';
import { RawClient } from './client.js';

const maps = 'compass/crawler-google-places';
let sim: Sim;
let client: RawClient;
beforeAll(async () => {
  sim = await startSim({ conditions: { mix: 'fixed' } });
});
beforeEach(async () => {
  sim.reset({ sessions: true });
  client = await RawClient.connect(sim.url, { tools: 'call-actor,runs' });
});
afterAll(() => sim.close());

async function admin<T>(
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<{ status: number; body: T }> {
  const reply = await fetch(`${sim.url}sim/${path}`, {
    method,
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: reply.status, body: (await reply.json()) as T };
}

describe('the ledger', () => {
  it('tells every start with its input, every poll, read, record and abort, in order', async () => {
    const input = { searchStringsArray: ['a'], sim: { runSecs: 100, items: 10 } };
    const runId = await client.start(maps, input, { memory: 512 });
    await client.call('get-actor-run', { runId, waitSecs: 0 });
    sim.finish(runId);
    await client.call('get-dataset-items', { datasetId: `ds${runId}`, offset: 2, limit: 5 });
    await client.call('get-key-value-store-record', { keyValueStoreId: `kv${runId}`, recordKey: 'INPUT' });
    await client.call('abort-actor-run', { runId });
    const { body } = await admin<{ dropped: number; entries: LedgerEntry[] }>('GET', `ledger?runId=${runId}`);
    expect(body.dropped).toBe(0);
    expect(body.entries.map(({ kind }) => kind)).toEqual([
      'start',
      'poll',
      'finished',
      'read',
      'record',
      'abort',
    ]);
    expect(body.entries[0]).toMatchObject({
      actor: maps,
      via: 'call-actor',
      options: { memory: 512 },
      session: client.session,
    });
    expect(JSON.parse(body.entries[0]?.input ?? '')).toEqual(input);
    expect(body.entries[3]).toMatchObject({ dataset: `ds${runId}`, offset: 2, limit: 5, count: 5 });
    const since = body.entries[2]?.n ?? 0;
    const later = await admin<{ entries: LedgerEntry[] }>(
      'GET',
      `ledger?runId=${runId}&since=${since}&kind=read,abort&limit=1`,
    );
    expect(later.body.entries.map(({ kind }) => kind)).toEqual(['read']);
  });

  it('is bounded and says what it dropped', async () => {
    const small = await startSim({ ledgerLimit: 8, keepRuns: 5, conditions: { mix: 'fixed' } });
    const other = await RawClient.connect(small.url, { tools: 'call-actor' });
    for (let i = 0; i < 12; i++) await other.start(maps, { sim: { runSecs: 0 } });
    expect(small.ledger.dropped).toBeGreaterThan(0);
    expect(small.ledger.entries().length + small.ledger.dropped).toBe(13);
    expect(small.stats()).toMatchObject({ starts: 12, runsKept: 5 });
    const forgotten = await other.call('get-actor-run', { runId: 'run00000000000001', waitSecs: 0 });
    expect(forgotten.result.content[0].text).toContain('not found');
    await small.close();
  });

  it('runs in flight are never forgotten', async () => {
    const small = await startSim({ keepRuns: 2, conditions: { mix: 'fixed' } });
    const other = await RawClient.connect(small.url, { tools: 'call-actor' });
    for (let i = 0; i < 6; i++) await other.start(maps, { sim: { runSecs: 100 } });
    expect(small.stats()).toMatchObject({ runsKept: 6, inFlight: 6 });
    await small.close();
  });
});

describe('the admin routes', () => {
  it('change conditions, and refuse what they do not know', async () => {
    expect((await admin<{ maxRuns: number }>('POST', 'conditions', { maxRuns: 3 })).body.maxRuns).toBe(3);
    for (const wrong of [{ maxRun: 3 }, { maxRuns: 'three' }, '{', [1]]) {
      const reply = await admin<{ error: string }>('POST', 'conditions', wrong);
      expect(reply.status).toBe(400);
      expect(reply.body.error).not.toBe('');
    }
    expect(sim.conditions.maxRuns).toBe(3);
    expect((await admin('GET', 'nothing')).status).toBe(404);
  });

  it('add and clear faults', async () => {
    const added = await admin<{ ids: number[] }>('POST', 'faults', [
      { kind: 'http_500', op: 'start', times: 1 },
      { kind: 'slow', ms: 1 },
    ]);
    expect(added.body.ids).toHaveLength(2);
    await expect(client.start(maps, {})).rejects.toThrow('HTTP 500');
    await client.start(maps, {});
    const listed = await admin<{ fired: Record<string, number> }>('GET', 'faults');
    expect(listed.body.fired).toEqual({ http_500: 1, slow: 1 });
    await admin('POST', 'faults/clear', { id: added.body.ids[1] });
    expect(sim.faults.list()).toHaveLength(1);
    expect((await admin('POST', 'faults', { kind: 'nonsense' })).status).toBe(400);
  });

  it('finish runs, drop sessions, count, and reset', async () => {
    const runId = await client.start(maps, { sim: { runSecs: 100, items: 8 } });
    await client.start(maps, { sim: { runSecs: 100 } });
    expect((await admin('POST', 'finish', { runId, status: 'FAILED', items: 3 })).body).toEqual({
      finished: true,
    });
    expect((await admin('POST', 'finish', { runId })).body).toEqual({ finished: false });
    const stats = (await admin<SimStats>('GET', 'stats')).body;
    expect(stats).toMatchObject({
      starts: 2,
      inFlight: 1,
      maxInFlight: 2,
      memoryMb: 4096,
      maxMemoryMb: 8192,
    });
    expect(stats.runsByStatus).toEqual({ FAILED: 1, RUNNING: 1 });
    expect((await admin('POST', 'sessions/drop')).body).toEqual({ dropped: 1 });
    await admin('POST', 'reset', {});
    const after = (await admin<SimStats>('GET', 'stats')).body;
    expect(after).toMatchObject({ starts: 0, runsKept: 0, inFlight: 0 });
    client = await RawClient.connect(sim.url, { tools: 'call-actor' });
    expect(Number((await client.start(maps, {})).slice(3))).toBeGreaterThan(Number(runId.slice(3)));
  });

  it('go down and come back', async () => {
    expect((await admin('POST', 'down', { secs: 0.05 })).body).toEqual({ downForSecs: 0.05 });
    const deadline = Date.now() + 5000;
    for (;;) {
      const back = await admin('GET', 'stats').then(
        () => true,
        () => false,
      );
      if (back) break;
      expect(Date.now()).toBeLessThan(deadline);
    }
    expect((await client.call('get-actor-run-list', {})).result.structuredContent.total).toBe(0);
  });

  it('the clock can be advanced', async () => {
    const runId = await client.start(maps, { sim: { runSecs: 100 } });
    await admin('POST', 'advance', { secs: 101 });
    const answer = await client.call('get-actor-run', { runId, waitSecs: 0 });
    expect(answer.result.structuredContent.status).toBe('SUCCEEDED');
  });
});
