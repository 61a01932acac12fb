import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { type SimStats, startSim } from '../test/sim/index.js';

/**
 * CPU of the simulator per call with 5,000 runs in flight: `npx tsx bench/sim-cpu.ts [calls]`. The simulator runs in a
 * process of its own and reports its own CPU time, so the client's share is not in the figures.
 */
const runs = 5000;
const concurrency = 32;

if (process.send === undefined) await measure(Number(process.argv[2] ?? 10_000));
else await serve();

async function serve(): Promise<void> {
  const sim = await startSim({ conditions: { mix: 'fixed' } });
  process.send?.({ url: sim.url });
  process.once('disconnect', () => void sim.close());
}

async function measure(calls: number): Promise<void> {
  const child = fork(fileURLToPath(import.meta.url), [], { execArgv: ['--import', 'tsx'] });
  const [{ url }] = (await once(child, 'message')) as [{ url: string }];
  const agent = new Agent({ connections: concurrency });
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: 'Bearer any',
  };
  let id = 0;
  const send = async (method: string, params: object) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params });
    const reply = await request(`${url}?tools=call-actor,runs`, {
      method: 'POST',
      headers,
      body,
      dispatcher: agent,
    });
    const text = await reply.body.text();
    if (reply.statusCode !== 200 || text.includes('"isError":true')) throw new Error(text.slice(0, 300));
    return { text, session: reply.headers['mcp-session-id'] };
  };
  const call = (name: string, args: object) => send('tools/call', { name, arguments: args });
  const stats = async () =>
    (await (await request(`${url}sim/stats`, { dispatcher: agent })).body.json()) as SimStats;

  const opened = await send('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  });
  headers['mcp-session-id'] = String(opened.session);
  const input = { searchStringsArray: ['plumber'], sim: { runSecs: 3600, items: 5000, itemBytes: 300 } };
  const start = (i: number) =>
    call('call-actor', { actor: 'compass/crawler-google-places', input: { ...input, row: i }, waitSecs: 0 });
  await atOnce(500, start);
  const runId = (i: number) => `run${String((i % runs) + 1).padStart(14, '0')}`;
  await atOnce(500, (i) => call('get-actor-run', { runId: runId(i % 500), waitSecs: 0 }));

  const rows: Record<string, object> = {};
  const phase = async (name: string, count: number, one: (i: number) => Promise<unknown>) => {
    const before = await stats();
    const begun = performance.now();
    await atOnce(count, one);
    const seconds = (performance.now() - begun) / 1000;
    const after = await stats();
    const cpuMs = (after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system) / 1000;
    rows[name] = {
      calls: count,
      'calls a second': Math.round(count / seconds),
      'CPU ms a call': Number((cpuMs / count).toFixed(3)),
      'runs in flight': after.inFlight,
    };
  };
  await phase('start', runs - 500, start);
  await phase('poll', calls, (i) => call('get-actor-run', { runId: runId(i), waitSecs: 0 }));
  const finished = await call('call-actor', {
    actor: 'compass/crawler-google-places',
    input: { sim: { runSecs: 0, items: 1000, itemBytes: 300 } },
    waitSecs: 0,
  });
  const datasetId = /ds(run\d{14})/.exec(finished.text)?.[0];
  await phase('page of 100 items of 300 B', calls, (i) =>
    call('get-dataset-items', { datasetId, offset: (i % 10) * 100, limit: 100 }),
  );
  await phase('list of 10 runs', Math.ceil(calls / 5), () =>
    call('get-actor-run-list', { limit: 10, desc: true }),
  );
  const { rssBytes } = await stats();
  console.table(rows);
  console.log(`RSS ${Math.round(rssBytes / 1024 / 1024)} MB, ${concurrency} calls at once`);
  await agent.close();
  child.disconnect();
}

async function atOnce(count: number, one: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
}
