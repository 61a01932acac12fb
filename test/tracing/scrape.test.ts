import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Folder, yellowPages } from '../cli/setup.js';
import { RedisProcess } from '../redis/redis-process.js';
import { type Sim, startSim } from '../sim/index.js';
import { type CollectedSpan, Collector } from './collector.js';

/** Real processes: `trawl submit` and `trawl work`, a collector, and the simulated server. */
const root = fileURLToPath(new URL('../..', import.meta.url));
const bin = join(root, 'src', 'cli', 'bin.ts');
const tsx = import.meta.resolve('tsx');
const patient = 150_000;
let sim: Sim;
let redis: RedisProcess;
let client: Redis;
const closing: (() => Promise<unknown> | unknown)[] = [];

beforeAll(async () => {
  [sim, redis] = await Promise.all([
    startSim({ conditions: { mix: 'fixed' } }),
    RedisProcess.start('--hz', '100'),
  ]);
  client = new Redis(redis.url, { maxRetriesPerRequest: null });
});
afterAll(async () => {
  for (const close of closing.reverse()) await close();
  client?.disconnect();
  await redis?.stop();
  await sim?.close();
});

class Trawl {
  readonly lines: string[] = [];
  private readonly child: ChildProcess;
  readonly ended: Promise<number | null>;

  constructor(folder: Folder, ...args: string[]) {
    this.child = spawn(process.execPath, ['--import', tsx, bin, ...args], {
      cwd: folder.path,
      env: { PATH: process.env.PATH, HOME: process.env.HOME },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    createInterface({ input: this.child.stderr as NodeJS.ReadableStream }).on('line', (line) =>
      this.lines.push(line),
    );
    this.ended = once(this.child, 'close').then(([code]) => code as number | null);
    closing.push(() => this.child.kill('SIGKILL'));
  }

  stop(): Promise<number | null> {
    this.child.kill('SIGTERM');
    return this.ended;
  }
}

async function open(
  prefix: string,
  mode?: 'takes' | 'hangs',
): Promise<{ folder: Folder; collector: Collector }> {
  const collector = await Collector.start(mode);
  const server = { url: sim.url, token: 'canary-of-the-token', tools: [yellowPages], limits: { runs: 8 } };
  const folder = new Folder(
    { apify: { ...server, limits: { runs: 20, requestsPerSecond: 500 } } },
    {
      prefix: `{${prefix}}`,
      redis: { url: redis.url },
      results: { pageBytes: 4_096 },
      traces: { endpoint: collector.url, headers: 'x-key=canary-of-the-key' },
    },
  );
  closing.push(
    () => folder.remove(),
    () => collector.stop(),
  );
  return { folder, collector };
}

async function settled(prefix: string, scrapes: number): Promise<void> {
  const ended = async () => {
    const keys = ['completed', 'failed'].map((state) => `{${prefix}}:scrape:${state}`);
    const counts = await Promise.all(keys.map((key) => client.zcard(key)));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  while ((await ended()) < scrapes) await new Promise((resolve) => setTimeout(resolve, 100));
}

const canary = 'canary-of-the-input';
const job = (id: string, sim: Record<string, unknown>) => ({
  id,
  input: { search: canary, sim },
  meta: { canary },
});
const duration = ({ startMs, endMs }: CollectedSpan) => endMs - startMs;

describe('traces', { timeout: patient }, () => {
  it('of a scrape: one, from submit over start and each poll to each page and the outcome', async () => {
    const { folder, collector } = await open('whole');
    folder.jobs('b.ndjson', [job('a', { runSecs: 3, items: 40, itemBytes: 300 })]);
    expect(await new Trawl(folder, 'submit', 'b.ndjson').ended).toBe(0);
    const work = new Trawl(folder, 'work');
    await settled('whole', 1);
    expect(await work.stop()).toBe(0);

    const [submit] = collector.named('submit');
    expect(submit?.attributes).toEqual({ scrapeId: 'b.a', server: 'apify', tool: yellowPages });
    const trace = collector.spans.filter(({ traceId }) => traceId === submit?.traceId);
    expect(new Set(trace.map(({ instance }) => instance)).size).toBe(2);
    const named = (name: string) => trace.filter((span) => span.name === name);

    // Whoever is in it hangs together: each parent is there, the submission alone has none.
    const ids = new Set(trace.map(({ spanId }) => spanId));
    expect(trace.filter(({ parentSpanId }) => !ids.has(parentSpanId))).toEqual([submit]);

    const [start] = named('mcp start');
    const runId = start?.attributes.runId;
    expect(start?.attributes).toMatchObject({ server: 'apify', tool: yellowPages, result: 'ok' });
    expect(runId).toMatch(/\w{10}/);
    expect(named('process start-apify')[0]?.attributes).toMatchObject({ scrapeId: 'b.a', runId });
    const polls = named('process poll-apify');
    expect(polls.length).toBeGreaterThan(1);
    expect(named('mcp poll').length).toBe(polls.length);
    for (const poll of polls) {
      expect(poll.attributes).toMatchObject({ scrapeId: 'b.a', runId, server: 'apify', tool: yellowPages });
    }
    const pages = named('page write');
    expect(pages.length).toBeGreaterThan(2);
    expect(pages.reduce((sum, { attributes }) => sum + Number(attributes.items), 0)).toBe(40);
    expect(named('mcp read').length).toBeGreaterThanOrEqual(pages.length);
    expect(named('settle')[0]?.attributes).toMatchObject({ runId, outcome: 'succeeded', items: 40 });
    const last = named('process scrape').at(-1);
    expect(last?.attributes).toMatchObject({
      scrapeId: 'b.a',
      runId,
      outcome: 'succeeded',
      tool: yellowPages,
    });

    // A run of seconds, and no span of more than a step; nothing that BullMQ does beside it.
    expect(Math.max(...trace.map(duration))).toBeLessThan(2_500);
    const known = /^(submit|(add|process) |mcp (list_tools|start|poll|read)$|page write$|settle$)/;
    expect(collector.spans.filter(({ name, events }) => !known.test(name) || events > 0)).toEqual([]);
    expect(collector.raw).not.toContain('canary');
    expect(collector.headers['x-key']).toBe('canary-of-the-key');
  });

  it('go on from the context a BullMQ producer gives, and stand alone without one, or with nonsense', async () => {
    const { folder, collector } = await open('plain');
    const queue = new Queue('scrape', { connection: client, prefix: '{plain}' });
    closing.push(() => queue.close());
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
    const add = (id: string, sim: Record<string, unknown>, metadata?: string) =>
      queue.add(
        'scrape',
        { tool: yellowPages, input: { sim }, deadline: '2s' },
        { jobId: `default.${id}`, ...(metadata === undefined ? {} : { telemetry: { metadata } }) },
      );
    await add('given', { runSecs: 600 }, JSON.stringify({ traceparent }));
    await add('none', { runSecs: 0.2, items: 1 });
    await add('nonsense', { runSecs: 0.2, items: 1 }, '{"traceparent":');
    await add(
      'not-sampled',
      { runSecs: 0.2, items: 1 },
      JSON.stringify({ traceparent: traceparent.replace(/01$/, '00') }),
    );
    const work = new Trawl(folder, 'work');
    await settled('plain', 4);
    expect(await work.stop()).toBe(0);

    const of = (id: string) =>
      collector.spans.filter(({ attributes }) => attributes.scrapeId === `default.${id}`);
    expect(new Set(of('given').map((span) => span.traceId))).toEqual(new Set([traceId]));
    const aborted = collector.named('process abort-apify').filter((span) => span.traceId === traceId);
    expect(aborted[0]?.attributes).toMatchObject({ scrapeId: 'default.given' });
    expect(collector.named('mcp abort').map((span) => span.traceId)).toContain(traceId);
    expect(of('given').some(({ attributes }) => attributes.outcome === 'deadline_exceeded')).toBe(true);
    for (const id of ['none', 'nonsense']) {
      const traces = new Set(of(id).map((span) => span.traceId));
      expect(traces.size).toBe(1);
      const [queued] = collector.named('queued').filter((span) => traces.has(span.traceId));
      expect(queued?.parentSpanId).toBe('');
      expect(of(id).some(({ name }) => name === 'settle')).toBe(true);
    }
    expect(of('not-sampled')).toEqual([]);
  });
});

describe.concurrent('traces that nobody reads', { timeout: patient }, () => {
  it('that nobody takes hold nothing up', async () => {
    const { folder, collector } = await open('hangs', 'hangs');
    const ids = Array.from({ length: 40 }, (_, index) => `s${index}`);
    folder.jobs(
      'b.ndjson',
      ids.map((id) => job(id, { runSecs: 0.2, items: 5 })),
    );
    expect(await new Trawl(folder, 'submit', 'b.ndjson').ended).toBe(0);
    const work = new Trawl(folder, 'work');
    await settled('hangs', ids.length);
    expect(await client.zcard('{hangs}:scrape:failed')).toBe(0);
    expect(await work.stop()).toBe(0);
    expect(collector.requests).toBeGreaterThan(0);
    expect(work.lines.join('\n')).not.toContain('canary');
  });

  it('are off by default: jobs carry nothing', async () => {
    const folder = new Folder(
      { apify: { url: sim.url, token: 'x', tools: [yellowPages] } },
      { prefix: '{off}', redis: { url: redis.url } },
    );
    closing.push(() => folder.remove());
    folder.jobs('b.ndjson', [job('a', { runSecs: 0.2, items: 1 })]);
    expect(await new Trawl(folder, 'submit', 'b.ndjson').ended).toBe(0);
    const work = new Trawl(folder, 'work');
    await settled('off', 1);
    expect(await work.stop()).toBe(0);
    expect(await client.hget('{off}:scrape:b.a', 'opts')).not.toContain('"tm"');
  });

  it.each([
    ['', 0],
    ['http://127.0.0.1:9', 1],
  ])('endpoint "%s": the SDK is loaded %s times', async (endpoint, loaded) => {
    const script = `
      import Module from 'node:module';
      import { createLogger } from './src/logger.ts';
      import { loadConfig } from './src/config.ts';
      import './src/cli/submit.ts';
      import './src/cli/worker-process.ts';
      import { openTracing } from './src/tracing/open.ts';
      const text = 'servers: { a: { tools: [a/b] } }\\ntraces: { endpoint: "${endpoint}" }';
      const tracing = await openTracing(loadConfig({ text, env: {}, cwd: '/' }), createLogger({ level: 'silent' }));
      await tracing.close();
      const files = Object.keys(Module._cache).filter((file) => /opentelemetry.(?!api.)|bullmq-otel/.test(file));
      console.log(files.length > 0 ? 1 : 0);`;
    const child = spawn(process.execPath, ['--import', tsx, '--input-type=module', '-e', script], {
      cwd: root,
    });
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    const [code] = await once(child, 'close');
    expect([code, out.trim()]).toEqual([0, String(loaded)]);
  });
});
