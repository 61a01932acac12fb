import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { ask, forkPart, startRedis } from './parts.js';

const tool = 'trudax/yellow-pages-us-scraper';
const scrapes = 2_000;
const input = {
  search: 'plumber',
  location: 'Austin, TX',
  sim: { runSecs: 0.5, readySecs: 0, lagSecs: 0, items: 100, itemBytes: 300 },
};

/**
 * 2,000 scrapes of one poll (after 1 s) and one page of 100 items of 300 bytes, limits out of the way, one worker process,
 * everything on this machine; then the plain SDK loop making the same calls against the same simulator.
 */
export async function lifecycle(): Promise<void> {
  const redis = await startRedis();
  const dir = mkdtempSync(join(tmpdir(), 'trawl-bench-'));
  const { child: sim, ready } = await forkPart('./sim-part.ts', {});
  const { url } = ready as { url: string };
  const config = join(dir, 'trawl.yaml');
  writeFileSync(
    config,
    stringify({
      poll: { interval: '1s' },
      servers: {
        apify: { url, token: 'bench', tools: [tool], limits: { runs: 100_000, requestsPerSecond: 100_000 } },
      },
    }),
  );
  const client = new Redis(redis.url, { maxRetriesPerRequest: null });
  const queue = new Queue('scrape', { connection: client, prefix: '{trawl}' });
  try {
    const { child: worker } = await forkPart('./worker-part.ts', { config, redis: redis.url });
    const jobs = Array.from({ length: scrapes }, (_, index) => ({
      name: 'scrape',
      data: { tool, input },
      opts: { jobId: `default.s${index}` },
    }));
    const begun = performance.now();
    await queue.addBulk(jobs);
    const marks = await settledMarks(client, begun);
    const usage = (await ask(worker, 'usage')) as { rss: number; cpu: Cpu };
    worker.kill('SIGKILL');
    const others = {
      redis: await redisCpuMs(client),
      sim: cpuMs(((await ask(sim, 'usage')) as { cpu: Cpu }).cpu),
    };
    const pages = countPages(join(dir, 'results'));
    const { child: loop, ready: looped } = await forkPart('./loop-part.ts', {
      url,
      tool,
      input,
      scrapes,
      atOnce: 512,
    });
    loop.kill();
    report(marks, usage, others, pages, looped as { seconds: number; items: number });
  } finally {
    sim.kill('SIGKILL');
    await queue.close();
    client.disconnect();
    redis.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** When each scrape was settled, in seconds since the first was added. */
async function settledMarks(client: Redis, begun: number): Promise<number[]> {
  const marks: number[] = [];
  while (marks.length < scrapes) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const settled = Number((await client.hget('{trawl}:batch:default', 'settled')) ?? 0);
    const at = (performance.now() - begun) / 1000;
    while (marks.length < settled) marks.push(at);
    if (at > 300) throw new Error(`only ${marks.length} of ${scrapes} settled after 300 s`);
  }
  return marks;
}

/** Of the process, in microseconds, as Node tells it. */
interface Cpu {
  readonly user: number;
  readonly system: number;
}

const cpuMs = ({ user, system }: Cpu): number => (user + system) / 1000;

async function redisCpuMs(client: Redis): Promise<number> {
  const info = await client.info('cpu');
  const seconds = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? 0);
  return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1000;
}

function countPages(dir: string): number {
  return readdirSync(dir, { recursive: true }).filter((name) => /page-\d+\.ndjson$/.test(String(name)))
    .length;
}

function report(
  marks: readonly number[],
  usage: { rss: number; cpu: Cpu },
  others: { redis: number; sim: number },
  pages: number,
  loop: { seconds: number; items: number },
): void {
  const at = (share: number) => marks[Math.min(marks.length - 1, Math.floor(marks.length * share))] as number;
  const sustained = (scrapes * 0.8) / (at(0.9) - at(0.1));
  const overall = scrapes / at(1);
  const looped = scrapes / loop.seconds;
  const lines = [
    `scrapes            ${scrapes}, ${pages} pages of 100 items`,
    `trawl, sustained   ${sustained.toFixed(0)}/s (10 % to 90 % settled)`,
    `trawl, overall     ${overall.toFixed(0)}/s (first submission to last outcome: ${at(1).toFixed(1)} s, 5 s of it each dataset's verified end)`,
    `plain SDK loop     ${looped.toFixed(0)}/s (${loop.items} items)`,
    `ratio              ${(sustained / looped).toFixed(2)} sustained, ${(overall / looped).toFixed(2)} overall`,
    `worker process     RSS ${(usage.rss / 1048576).toFixed(0)} MB`,
    `CPU a scrape       worker ${(cpuMs(usage.cpu) / scrapes).toFixed(2)} ms, Redis ${(others.redis / scrapes).toFixed(2)} ms, simulator ${(others.sim / scrapes).toFixed(2)} ms`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
