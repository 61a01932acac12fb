import { describe, expect, it } from 'vitest';
import { operations } from '../../src/mcp/port.js';
import { createMetrics } from '../../src/metrics/index.js';
import { outcomes } from '../../src/scrape/types.js';
import { fullMetrics, seriesOf } from './full.js';

const servers = { apify: { tools: ['compass/crawler-google-places', 'trudax/yellow-pages-us-scraper'] } };
const create = () => createMetrics({ version: '0.1.0', servers });
const tool = 'compass/crawler-google-places';

/** The value of one series in the exposition text, undefined when there is no such series. */
function value(text: string, series: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

/** Design A8, word by word: dashboards and alerts of others depend on it. */
const contract: Record<string, string[]> = {
  scrapes_submitted_total: ['server', 'tool'],
  scrapes_deduplicated_total: ['server'],
  jobs_invalid_total: ['source'],
  scrapes_settled_total: ['server', 'tool', 'outcome'],
  mcp_requests_total: ['server', 'operation', 'result'],
  mcp_protocol_errors_total: ['server', 'operation', 'code'],
  mcp_request_duration_seconds: ['server', 'operation'],
  run_duration_seconds: ['server', 'tool'],
  scrape_duration_seconds: ['server', 'tool'],
  poll_lateness_seconds: ['server'],
  items_written_total: ['server', 'sink'],
  pages_written_total: ['server', 'sink'],
  result_bytes_total: ['server', 'sink'],
  sink_errors_total: ['sink'],
  sink_held: ['sink'],
  queue_jobs: ['queue', 'state'],
  queue_oldest_age_seconds: ['queue'],
  runs_in_flight: ['server'],
  run_slots: ['server'],
  server_up: ['server'],
  server_held: ['server', 'reason'],
  tool_held: ['server', 'tool', 'reason'],
  usage_usd_total: ['server', 'tool'],
  ambiguous_starts_total: ['server', 'resolution'],
  orphan_runs_total: ['server', 'action'],
  stalled_jobs_total: ['queue'],
  retries_total: ['server', 'reason'],
  worker_last_fetch_timestamp_seconds: ['queue'],
  redis_memory_used_bytes: [],
  redis_memory_max_bytes: [],
  redis_evicted_keys_total: [],
  build_info: ['version'],
};

/** Calls every method once, with names that are known. */
function useAll(metrics: ReturnType<typeof create>): void {
  metrics.scrapeSubmitted('apify', tool);
  metrics.scrapeDeduplicated('apify');
  metrics.jobInvalid('stream');
  metrics.scrapeSettled('apify', tool, 'empty');
  metrics.mcpRequest('apify', 'poll', 'protocol_error', 0.2, -32602);
  metrics.runDuration('apify', tool, 42);
  metrics.scrapeDuration('apify', tool, 43);
  metrics.pollLateness('apify', 0.3);
  metrics.pageWritten('apify', 'file', { items: 100, bytes: 30_000 });
  metrics.sinkError('file');
  metrics.sinkHeld('file', true);
  metrics.queueJobs('start-apify', 'prioritized', 7);
  metrics.queueOldestAge('start-apify', 12);
  metrics.runsInFlight('apify', 3);
  metrics.runSlots('apify', 5);
  metrics.serverUp('apify', true);
  metrics.serverHeld('apify', new Set(['auth']));
  metrics.toolHeld('apify', tool, new Set(['brake']));
  metrics.usage('apify', tool, 0.25);
  metrics.ambiguousStart('apify', 'adopted');
  metrics.orphanRun('apify', 'aborted');
  metrics.stalledJob('poll-apify');
  metrics.retry('apify', 'failed');
  metrics.workerFetched('poll-apify', 1_764_000_000_000);
  metrics.redis({ usedBytes: 10, maxBytes: 20, evictedKeys: 0 });
}

describe('metrics', () => {
  it('are those of the contract, each with its labels and none more', async () => {
    const metrics = create();
    useAll(metrics);
    const found: Record<string, string[]> = {};
    for (const { name, values } of await metrics.registry.getMetricsAsJSON()) {
      const labels = new Set(values.flatMap((each) => Object.keys(each.labels)));
      labels.delete('le');
      found[name.replace(/^trawl_/, '')] = [...labels].sort();
      expect(name).toMatch(/^trawl_/);
    }
    const sorted = Object.entries(contract).map(([name, labels]) => [name, [...labels].sort()]);
    expect(found).toEqual(Object.fromEntries(sorted));
  });

  it('keep registries apart', async () => {
    const [one, two] = [create(), create()];
    one.scrapeDeduplicated('apify');
    expect(value(await two.text(), 'trawl_scrapes_deduplicated_total{server="apify"}')).toBe(0);
  });

  it('show zeros for what must be seen rising from nothing', async () => {
    const text = await create().text();
    for (const operation of operations) {
      for (const result of ['ok', 'protocol_error', 'tool_error']) {
        const series = `trawl_mcp_requests_total{server="apify",operation="${operation}",result="${result}"}`;
        expect(value(text, series)).toBe(0);
      }
    }
    for (const outcome of outcomes) {
      expect(
        value(text, `trawl_scrapes_settled_total{server="apify",tool="${tool}",outcome="${outcome}"}`),
      ).toBe(0);
    }
    expect(text).not.toContain('result="timeout"');
    expect(text).not.toMatch(/trawl_mcp_protocol_errors_total\{/);
  });

  it('count protocol errors by code, apart from tool errors', async () => {
    const metrics = create();
    metrics.mcpRequest('apify', 'start', 'protocol_error', 0.1, -32602);
    metrics.mcpRequest('apify', 'start', 'protocol_error', 0.1, 4242);
    metrics.mcpRequest('apify', 'start', 'protocol_error', 0.1, null);
    metrics.mcpRequest('apify', 'start', 'tool_error', 0.1);
    const text = await metrics.text();
    const errors = (code: string) =>
      value(text, `trawl_mcp_protocol_errors_total{server="apify",operation="start",code="${code}"}`);
    expect([errors('-32602'), errors('other'), errors('4242')]).toEqual([1, 2, undefined]);
    expect(value(text, 'trawl_mcp_request_duration_seconds_count{server="apify",operation="start"}')).toBe(4);
  });

  it.each(['nobody/knows', '__proto__', 'constructor', 'x'.repeat(10_000), 'a"b\nc', ''])(
    'let no unknown name become a label: %j',
    async (name) => {
      const metrics = create();
      metrics.scrapeSettled('apify', name, 'empty');
      metrics.scrapeSettled(name, tool, 'empty');
      metrics.stalledJob(name);
      metrics.queueJobs(name, name, 1);
      metrics.sinkError(name);
      metrics.retry('apify', name);
      const text = await metrics.text();
      expect(value(text, 'trawl_scrapes_settled_total{server="apify",tool="other",outcome="empty"}')).toBe(1);
      expect(value(text, 'trawl_scrapes_settled_total{server="other",tool="other",outcome="empty"}')).toBe(1);
      expect(value(text, 'trawl_stalled_jobs_total{queue="other"}')).toBe(1);
      expect(value(text, 'trawl_queue_jobs{queue="other",state="other"}')).toBe(1);
    },
  );

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1])('are not broken by %d', async (bad) => {
    const metrics = create();
    metrics.usage('apify', tool, bad);
    metrics.runDuration('apify', tool, bad);
    metrics.pageWritten('apify', 'file', { items: bad, bytes: bad });
    metrics.queueJobs('scrape', 'waiting', bad);
    const text = await metrics.text();
    expect(text).not.toMatch(/ (NaN|Infinity|\+Inf)$/m);
    expect(value(text, `trawl_usage_usd_total{server="apify",tool="${tool}"}`)).toBe(0);
  });

  it('read zero for a hold that ended and forget the fleet when another process is elected', async () => {
    const metrics = create();
    metrics.toolHeld('apify', tool, new Set(['brake']));
    metrics.toolHeld('apify', tool, new Set());
    metrics.serverHeld('apify', new Set(['auth']));
    metrics.serverHeld('apify', new Set(['payment']));
    metrics.redis({ usedBytes: 1, maxBytes: 2, evictedKeys: 3 });
    const held = await metrics.text();
    expect(value(held, `trawl_tool_held{server="apify",tool="${tool}",reason="brake"}`)).toBe(0);
    expect(value(held, 'trawl_server_held{server="apify",reason="auth"}')).toBe(0);
    expect(value(held, 'trawl_server_held{server="apify",reason="payment"}')).toBe(1);
    metrics.forgetFleet();
    expect(await metrics.text()).not.toMatch(
      /^trawl_(tool_held|server_held|queue_jobs|redis_memory_used_bytes)/m,
    );
  });

  it('run what was registered before each exposition', async () => {
    const metrics = create();
    const off = metrics.onCollect(() => metrics.workerFetched('scrape', 5000));
    expect(value(await metrics.text(), 'trawl_worker_last_fetch_timestamp_seconds{queue="scrape"}')).toBe(5);
    off();
  });

  // How long that takes is measured, not tested: `npm run bench -- metrics`.
  it('stay under 5,000 series with 50 pairs of server and tool in full use', async () => {
    const series = seriesOf(await fullMetrics().text());
    expect(series).toBeGreaterThan(2_000);
    expect(series).toBeLessThan(5_000);
  });
});
