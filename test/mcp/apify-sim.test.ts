import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { checkInput } from '../../src/mcp/input-check.js';
import type { RunView, ScrapeServer, StartResult } from '../../src/mcp/port.js';
import { type RefusalName, refusalNames, type Sim, type Steering, startSim } from '../sim/index.js';
import { actor, failureOf, okOf, setup } from './setup.js';

let sim: Sim;
let server: ScrapeServer;

beforeAll(async () => {
  sim = await startSim();
});
afterAll(() => sim.close());
afterEach(async () => {
  sim.faults.clear();
  await server.close();
});

const use = (...args: Parameters<typeof setup> extends [string, ...infer Rest] ? Rest : never) => {
  ({ server } = setup(sim.url, ...args));
};
const start = (steering: Steering): Promise<StartResult> =>
  server.start({
    tool: actor,
    input: { location: 'x', sim: steering },
    options: {},
    runTimeoutMs: 60_000,
    timeoutMs: 15_000,
  });

async function pollToEnd(runId: string): Promise<RunView> {
  for (;;) {
    const run = okOf(await server.poll(runId, { waitSecs: 5 }));
    if (run.final) return run;
  }
}

describe('with the simulated server', () => {
  it.each(['auto', 'direct'] as const)(
    'follows a run from start to its items and records (%s)',
    async (via) => {
      use({ config: { via } });
      const described = okOf(await server.describe());
      expect(described).toMatchObject({ missing: [], canList: true, waitSecsCap: 45 });
      const schema = described.tools.get(actor)?.inputSchema;
      expect(checkInput(schema as object, {})).toHaveLength(1);
      const records = { OUTPUT: { done: true } };
      const started = okOf(await start({ runSecs: 0.05, readySecs: 0, items: 37, records, usageUsd: 0.25 }));
      const run = await pollToEnd(started.runId);
      expect(run).toMatchObject({ status: 'SUCCEEDED', itemCount: 37, usageUsd: 0.25 });
      const lines: string[] = [];
      while (lines.length < 37) {
        const request = { datasetId: run.datasetId ?? '', offset: lines.length, limit: 15, fields: [] };
        const page = okOf(await server.readPage(request));
        expect(page.totalItemCount).toBe(37);
        lines.push(...page.lines);
      }
      expect(new Set(lines).size).toBe(37);
      expect(run.recordKeys).toContain('OUTPUT');
      const record = okOf(await server.readRecord(run.storeId ?? '', 'OUTPUT'));
      expect(record).toMatchObject({ kind: 'json', body: Buffer.from('{"done":true}') });
      const { runs } = okOf(await server.listRuns({ offset: 0, limit: 10 }));
      expect(runs[0]).toMatchObject({ runId: run.runId, status: 'SUCCEEDED', datasetId: run.datasetId });
    },
  );

  it('aborts a run, and says when it is final', async () => {
    use();
    const { runId } = okOf(await start({ runSecs: 60, readySecs: 0, abortSecs: 0.05 }));
    expect(okOf(await server.abort(runId)).status).toMatch(/^ABORT/);
    expect((await pollToEnd(runId)).status).toBe('ABORTED');
    expect(failureOf(await server.poll('run99999999999999'))).toMatchObject({ notFound: true });
  });

  /** What each refusal has to become, through call-actor. */
  const refusals: Record<RefusalName, { refusal: string; holdReason: string | null; kind?: string }> = {
    payment: { refusal: 'server', holdReason: 'payment' },
    usage: { refusal: 'server', holdReason: 'payment' },
    platform_feature: { refusal: 'server', holdReason: 'payment' },
    concurrency: { refusal: 'not_now', holdReason: 'capacity', kind: 'capacity' },
    cannot_start: { refusal: 'not_now', holdReason: 'capacity', kind: 'capacity' },
    memory: { refusal: 'not_now', holdReason: 'capacity', kind: 'capacity' },
    actor_memory: { refusal: 'not_now', holdReason: 'capacity', kind: 'capacity' },
    auth: { refusal: 'server', holdReason: 'auth' },
    permissions: { refusal: 'tool', holdReason: 'auth' },
    not_rented: { refusal: 'tool', holdReason: 'payment' },
    not_approved: { refusal: 'tool', holdReason: 'auth' },
    disabled: { refusal: 'tool', holdReason: 'tools_missing' },
    public_disabled: { refusal: 'tool', holdReason: 'tools_missing' },
    removed: { refusal: 'tool', holdReason: 'tools_missing' },
    bad_input: { refusal: 'scrape', holdReason: null, kind: 'invalid_input' },
    min_charge: { refusal: 'scrape', holdReason: null, kind: 'invalid_input' },
    server_error: { refusal: 'none', holdReason: null },
    unknown: { refusal: 'unknown', holdReason: null },
  };
  it.each(refusalNames)('classes the refusal %s, with its code and in bare words', async (refuse) => {
    use();
    for (const refuseBare of [false, true]) {
      const failure = failureOf(await start({ refuse, refuseBare }));
      const certain = !['none', 'unknown'].includes(refusals[refuse].refusal);
      expect(failure).toMatchObject({ kind: 'tool_error', ...refusals[refuse], noEffect: certain });
    }
  });

  it.each(refusalNames)(
    'a direct tool that says %s is ambiguous unless no run can be behind it',
    async (refuse) => {
      use({ config: { via: 'direct' } });
      const ambiguous = ['auth', 'permissions', 'server_error', 'unknown'].includes(refuse);
      for (const refuseBare of [false, true]) {
        const failure = failureOf(await start({ refuse, refuseBare }));
        const expected = ambiguous
          ? { refusal: 'none', noEffect: false }
          : { ...refusals[refuse], noEffect: true };
        expect(failure).toMatchObject(expected);
      }
    },
  );

  it.each([
    { fault: 'reset_before', kind: 'network_error', noEffect: false, made: 0 },
    { fault: 'http_401', kind: 'http_error', noEffect: true, made: 0 },
    { fault: 'http_413', kind: 'http_error', noEffect: true, made: 0 },
    { fault: 'http_429', kind: 'rate_limited', noEffect: true, made: 0 },
    { fault: 'http_502', kind: 'http_error', noEffect: false, made: 0 },
    { fault: 'http_302', kind: 'http_error', noEffect: true, made: 0 },
    { fault: 'accepted', kind: 'invalid_response', noEffect: false, made: 0 },
    { fault: 'rpc_invalid_params', kind: 'protocol_error', noEffect: true, made: 0 },
    { fault: 'rpc_internal', kind: 'protocol_error', noEffect: false, made: 0 },
    { fault: 'reset_after', kind: 'network_error', noEffect: false, made: 1 },
    { fault: 'http_500_after', kind: 'http_error', noEffect: false, made: 1 },
    { fault: 'not_json', kind: 'invalid_response', noEffect: false, made: 1 },
    { fault: 'cut', kind: 'network_error', noEffect: false, made: 1 },
    { fault: 'cut_end', kind: 'invalid_response', noEffect: false, made: 1 },
    { fault: 'huge', kind: 'invalid_response', noEffect: false, made: 1 },
    { fault: 'wrong_shape', kind: 'invalid_response', noEffect: false, made: 1 },
    { fault: 'wrong_id', kind: 'invalid_response', noEffect: false, made: 1 },
    { fault: 'task_result', kind: 'invalid_response', noEffect: false, made: 1 },
  ] as const)('a start struck by $fault: $kind', async ({ fault, kind, noEffect, made }) => {
    use();
    await server.describe();
    const before = sim.stats().starts;
    sim.faults.next(fault, 'start');
    const failure = failureOf(await start({ runSecs: 0, readySecs: 0 }));
    expect(sim.stats().starts - before).toBe(made);
    expect({ kind: failure.kind, noEffect: failure.noEffect }).toEqual({ kind, noEffect });
    // What is said to have had no effect had none.
    if (made > 0) expect(failure.noEffect).toBe(false);
  });

  it.each(['no_structured', 'sentence_only'] as const)(
    'a start answered with %s still has its run id',
    async (fault) => {
      use();
      await server.describe();
      sim.faults.next(fault, 'start');
      expect(okOf(await start({ runSecs: 0, readySecs: 0 })).runId).toBe(sim.runs().at(-1)?.runId);
    },
  );

  it('a start whose session was lost is made once', async () => {
    use();
    await server.describe();
    const before = sim.stats().starts;
    sim.dropSessions();
    okOf(await start({ runSecs: 0, readySecs: 0 }));
    expect(sim.stats().starts - before).toBe(1);
  });

  it('a start that times out is not cancelled on the server', async () => {
    use();
    await server.describe();
    sim.faults.next('drop_after', 'start');
    const result = await server.start({
      tool: actor,
      input: { location: 'x', sim: { runSecs: 60, readySecs: 0 } },
      options: {},
      runTimeoutMs: 60_000,
      timeoutMs: 300,
    });
    expect(failureOf(result)).toMatchObject({ kind: 'timeout', refusal: 'none', noEffect: false });
    await server.close();
    expect(sim.stats().cancelled).toBe(0);
    expect(sim.runs().at(-1)?.status).toMatch(/READY|RUNNING/);
  });
});
