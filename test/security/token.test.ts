import { afterEach, beforeEach, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { createLogger } from '../../src/logger.js';
import { createMetrics } from '../../src/metrics/index.js';
import { defaultTiming } from '../../workers/timing.js';
import { Folder } from '../cli/setup.js';
import { type Sim, startSim } from '../sim/index.js';
import { Fleet } from '../workers/fleet.js';
import { Front, type Instead, openThief, type ToolCall } from './front.js';
import { dumpRedis, walk } from './traces.js';

const token = 'canary+token/0123456789==';
const httpToken = 'canary-http-token-0123456789';
const tool = 'trudax/yellow-pages-us-scraper';
const forms = [token, encodeURIComponent(token), Buffer.from(token).toString('base64'), httpToken];

let sim: Sim;
let front: Front;
let thief: Awaited<ReturnType<typeof openThief>>;
let fleet: Fleet;
let folder: Folder;
const lines: string[] = [];

beforeEach(async () => {
  sim = await startSim({ conditions: { mix: 'fixed' } });
  front = await Front.open(sim.url);
  thief = await openThief();
  const servers = {
    apify: { url: front.url, token, tools: [tool], limits: { runs: 20, requestsPerSecond: 500 } },
  };
  const settings = { http: { port: 0, token: httpToken }, log: { level: 'trace' } };
  fleet = await Fleet.inFrontOf(servers, settings);
  folder = new Folder(servers, {
    ...settings,
    redis: { url: fleet.redis.url },
    results: { dir: fleet.config.results.dir },
  });
});
afterEach(async () => {
  await fleet.close();
  await Promise.all([front.close(), thief.close(), sim.close()]);
  folder.remove();
});

/** Each quotes the token where a server could. */
const quotes: Record<string, (token: string) => Instead> = {
  unauthorized: (said) => ({
    http: 401,
    body: JSON.stringify({ error: { message: `token ${said} is not valid` } }),
  }),
  forbidden: (said) => ({ http: 403, body: `<html>No access for Bearer ${said}</html>` }),
  limited: (said) => ({ http: 429, headers: { 'retry-after': '1' }, body: `slow down, ${said}` }),
  broken: (said) => ({ http: 500, headers: { 'x-echo': said }, body: `at fetch(authorization=${said})` }),
  redirect: (said) => ({
    http: 307,
    headers: { location: `${thief.url}?token=${encodeURIComponent(said)}` },
    body: said,
  }),
  protocol: (said) => ({ error: { code: -32603, message: `MCP error -32603: ${said} failed` } }),
  tool: (said) => ({
    result: { isError: true, content: [{ type: 'text', text: `Bearer ${said}: status code 500` }] },
  }),
  shape: (said) => ({ result: { content: [], structuredContent: { runId: said, status: said } } }),
};

/** The scrape's id says which call is answered with which quotation, once: `poll-broken`. */
function instead(call: ToolCall, runs: ReadonlyMap<string, string>, used: Set<string>): Instead | null {
  const stage = {
    'call-actor': 'start',
    'get-actor-run': 'poll',
    'abort-actor-run': 'abort',
    'get-dataset-items': 'read',
  }[call.tool];
  if (stage === undefined) return null;
  const id =
    stage === 'start'
      ? (call.arguments.input as { name?: string }).name
      : (runs.get(String(call.arguments.runId)) ?? runs.get(String(call.arguments.datasetId)));
  const [at, quote = ''] = (id ?? '').split('-');
  const say = quotes[quote];
  if (at !== stage || say === undefined || used.has(String(id))) return null;
  used.add(String(id));
  return say(call.token);
}

it('is nowhere after a night with a server that quotes it at every turn', { timeout: 120_000 }, async () => {
  const runs = new Map<string, string>();
  const used = new Set<string>();
  front.instead = (call) => {
    if (call.tool === 'get-actor-run') track(call.arguments.runId as string);
    return instead(call, runs, used);
  };
  // Which run, and which dataset, belongs to which scrape.
  const track = (runId: string) => {
    const run = sim.ledger.entries().find((entry) => entry.runId === runId && entry.input !== undefined);
    const { name } = JSON.parse(run?.input ?? '{}') as { name?: string };
    if (name !== undefined) runs.set(runId, name);
  };
  front.rewrite = (called, result) => {
    const data = result.structuredContent as Record<string, unknown> | undefined;
    if (data?.runId === undefined) return result;
    const storages = data.storages as {
      datasets: Record<string, { id: string }>;
      keyValueStores: Record<string, { keys?: string[] }>;
    };
    const name = runs.get(String(data.runId));
    const dataset = storages?.datasets?.default?.id;
    if (name !== undefined && dataset !== undefined) runs.set(dataset, name);
    if (called === 'get-actor-run' && storages?.keyValueStores?.default) {
      storages.keyValueStores.default.keys = ['OUTPUT', token, `x ${token}`];
      storages.datasets[`a ${token}`] = { id: 'ds99', itemCount: 3 } as never;
    }
    return { ...result, structuredContent: { ...data, statusMessage: `Authorization: Bearer ${token}` } };
  };

  // Not told of the token: what is logged must not hold it in the first place.
  const log = createLogger({ level: 'trace', destination: { write: (line) => lines.push(line) } });
  const metrics = createMetrics({ version: 'test', servers: { apify: { tools: [tool] } } });
  const timing = {
    ...defaultTiming,
    probeEveryMs: 200,
    firstTrialMs: 200,
    trialEveryMs: 400,
    refusalPatienceMs: 500,
    sweepEveryMs: 500,
  };
  fleet.queue.setMaxListeners(0);
  await fleet.daemon({ log, metrics, timing });

  const stages = ['start', 'poll', 'read'];
  const ambiguous = new Set(['start-broken', 'start-protocol', 'start-tool', 'start-shape']);
  const ids = stages
    .flatMap((stage) => Object.keys(quotes).map((quote) => `${stage}-${quote}`))
    .filter((id) => !ambiguous.has(id));
  ids.push('abort-tool', 'abort-unauthorized', 'empty');
  for (const id of ids) {
    const simulated = { runSecs: id.startsWith('abort') ? 60 : 0.5, items: id === 'empty' ? 0 : 3 };
    const deadline = id.startsWith('abort') ? 2 : 30;
    const job = {
      tool,
      input: { name: id, sim: simulated },
      deadline,
      records: ['OUTPUT'],
      meta: { row: id },
    };
    await fleet.add(id, job);
  }
  await fleet.add('rejected', { tool, input: {}, options: { memory: 3 } });
  const outcomes = await Promise.all([...ids, 'rejected'].map((id) => fleet.outcome(id, 50_000)));
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(
    expect.arrayContaining(['succeeded', 'deadline_exceeded', 'empty', 'rejected']),
  );
  expect(JSON.stringify(outcomes)).toContain('[redacted]');
  expect(used.size, `quoted in ${[...used]}`).toBeGreaterThan(20);

  const said: string[] = [];
  for (const args of [
    ['status', '--json'],
    ['status'],
    ['status', 'default.empty'],
    ['doctor'],
    ['doctor', '--json'],
    ['tools', 'apify'],
    ['cancel', 'default.nothing'],
    ['export', '--batch', 'default'],
    ['pause', 'apify'],
    ['resume', 'apify'],
  ]) {
    const { out, err } = await folder.trawl(...args);
    said.push(`${args.join(' ')}: ${out}${err}`);
  }
  const broken = folder.write(
    'broken.yaml',
    stringify({
      servers: { apify: { token, url: `https://x/?token=${token}`, tools: [tool], nope: token } },
    }),
  );
  said.push((await folder.trawl('status', '--config', broken)).err);

  // It was in use all the time, and nowhere else.
  expect([...front.tokens]).toEqual([token]);
  expect(thief.stolen).toEqual([]);
  const redis = await dumpRedis(fleet.client);
  expect(redis.size).toBeGreaterThan(30);
  expect(lines.length).toBeGreaterThan(50);
  const places: Record<string, string> = {
    logs: lines.join(''),
    metrics: await metrics.text(),
    redis: [...redis].flat().join('\n'),
    results: walk(fleet.config.results.dir)
      .map(({ path, text }) => `${path}\n${text}`)
      .join('\n'),
    outcomes: JSON.stringify(outcomes),
    terminal: said.join('\n'),
    folder: walk(folder.path)
      .filter(({ path }) => !path.endsWith('.yaml'))
      .map(({ text }) => text)
      .join('\n'),
  };
  for (const [place, text] of Object.entries(places)) {
    for (const form of forms) {
      const at = text.indexOf(form);
      expect(at < 0 ? '' : text.slice(Math.max(0, at - 200), at + 60), `the token is in ${place}`).toBe('');
    }
  }
  expect(places.results).toContain('outcome.json');
});
