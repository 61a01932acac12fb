import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { metricEvents } from '../../grafana/src/metrics-text.js';
import { Bench } from './harness.js';

type Line = Readonly<Record<string, unknown>>;

/** How an event's fields are the labels of its metric; null: this line is none of its increments. */
const labelsOf: Readonly<Record<string, (line: Line) => Line | null>> = {
  trawl_scrapes_submitted_total: ({ server, tool }) => ({ server, tool }),
  trawl_scrapes_settled_total: ({ server, tool, outcome }) => ({ server, tool, outcome }),
  trawl_jobs_invalid_total: ({ source }) => ({ source }),
  trawl_mcp_requests_total: ({ server, operation, result }) => ({ server, operation, result }),
  trawl_mcp_protocol_errors_total: ({ server, operation, result, rpcCode }) =>
    result === 'protocol_error' ? { server, operation, code: String(rpcCode ?? 'other') } : null,
  trawl_ambiguous_starts_total: ({ server, event }) => ({
    server,
    resolution: String(event).replace('start.', '').replace('repeated', 'restarted'),
  }),
  trawl_retries_total: ({ server, reason }) => ({ server, reason }),
};

const events = new Map(metricEvents().map((metric) => [metric.name, metric]));
const key = (labels: Line) => JSON.stringify(Object.entries(labels).sort());

describe('of the metrics', () => {
  it('each counter that rules ask for has an event, save what no scrape is to blame for', () => {
    const silent = [...events.values()]
      .filter(({ type, watched, events: told }) => type === 'Counter' && watched && told.length === 0)
      .map(({ name }) => name);
    expect(silent).toEqual(['trawl_redis_evicted_keys_total']);
  });

  it('each event is one that the workers write', () => {
    const root = fileURLToPath(new URL('../..', import.meta.url));
    const sources = ['workers', 'src/mcp']
      .flatMap((folder) => readdirSync(`${root}${folder}`).map((file) => `${root}${folder}/${file}`))
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n');
    const told = [...events.values()].flatMap((metric) => metric.events);
    expect(told.length).toBeGreaterThan(10);
    expect(told.filter((event) => !sources.includes(`event: '${event}'`))).toEqual([]);
  });
});

describe('after a day of two workers', { timeout: 120_000 }, () => {
  let bench: Bench;
  const counted = new Map<string, Map<string, number>>();

  beforeAll(async () => {
    bench = await Bench.open({ config: { retry: { backoff: 0 } } });
    const daemons = [await bench.daemon(), await bench.daemon()];
    const quick = { runSecs: 0.2, readySecs: 0, lagSecs: 0 };
    const sims: Record<string, unknown> = {
      good: { ...quick, items: 5 },
      empty: { ...quick, items: 0 },
      sad: { ...quick, status: 'FAILED' },
      rocky: {
        ...quick,
        items: 3,
        faults: [
          { op: 'poll', kind: 'rpc_internal' },
          { op: 'poll', kind: 'http_500' },
          { op: 'read', kind: 'rpc_invalid_params' },
        ],
      },
      unheard: { ...quick, items: 1, faults: [{ op: 'start', kind: 'reset_after' }] },
    };
    for (const [id, sim] of Object.entries(sims)) {
      await bench.add(id, { input: { sim }, ...(id === 'sad' ? { retries: 1 } : {}) });
    }
    await bench.add('wrong', { input: {}, prioritty: 1 });
    for (const id of [...Object.keys(sims), 'wrong']) await bench.outcome(id);
    for (const { ctx } of daemons) {
      for (const line of (await ctx.metrics.text()).split('\n')) {
        const [, name, labels, value] = /^(trawl_\w+_total)\{(.*)\} (\S+)$/.exec(line) ?? [];
        if (name === undefined || labels === undefined || Number(value) === 0) continue;
        const own = Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map((pair) => pair.slice(1)));
        const series = counted.get(name) ?? new Map<string, number>();
        counted.set(name, series);
        series.set(key(own), (series.get(key(own)) ?? 0) + Number(value));
      }
    }
  }, 120_000);
  afterAll(() => bench?.close());

  it.each(Object.keys(labelsOf))('%s is the number of its lines in the log, by its labels', (name) => {
    const told = new Map<string, number>();
    for (const line of bench.logged) {
      if (!events.get(name)?.events.includes(String(line.event))) continue;
      const labels = labelsOf[name]?.(line);
      if (labels) told.set(key(labels), (told.get(key(labels)) ?? 0) + 1);
    }
    expect(told.size).toBeGreaterThan(0);
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(counted.get(name) ?? []));
  });

  it("a producer's id leads to the run, and a failed call to both", () => {
    const of = (event: string, scrapeId: string) =>
      bench.logged.filter((line) => line.event === event && line.scrapeId === scrapeId);
    const [accepted] = of('scrape.accepted', 'default.rocky');
    const [started] = of('scrape.started', 'default.rocky');
    expect(accepted).toMatchObject({ jobId: 'default.rocky', server: 'apify', module: 'scrape' });
    const calls = of('mcp.call', 'default.rocky');
    const { runId } = started ?? {};
    expect(runId).toMatch(/^\w{10,}$/);
    const failed = calls.filter(({ result }) => result !== 'ok');
    expect(failed.map(({ operation, result, rpcCode }) => [operation, result, rpcCode])).toEqual([
      ['poll', 'protocol_error', -32603],
      ['poll', 'http_error', undefined],
      ['read', 'protocol_error', -32602],
    ]);
    for (const line of failed) {
      expect(line).toMatchObject({ runId, server: 'apify', module: 'mcp', level: 'warn', session: 1 });
      expect(line.message).toMatch(/\w/);
    }
    // Where a session's calls are told apart, by their JSON-RPC ids.
    const ids = bench.logged.filter(({ event, operation }) => event === 'mcp.call' && operation === 'poll');
    expect(ids.every(({ requestId, pid }) => Number.isInteger(requestId) && pid === process.pid)).toBe(true);
    expect(of('scrape.settled', 'default.rocky')[0]).toMatchObject({ runId, outcome: 'succeeded' });
  });
});
