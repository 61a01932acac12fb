import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { forkPart, startRedis } from './parts.js';

const tool = 'trudax/yellow-pages-us-scraper';
const scrapes = Number(process.argv[3] ?? 20_000);
const keepSecs = 20;

/** Redis' keys after 20,000 scrapes (or as many as the command says) with a retention of 20 s, against those after the first few (promise 12: within 5 %). */
export async function growth(): Promise<void> {
  const redis = await startRedis();
  const dir = mkdtempSync(join(tmpdir(), 'trawl-bench-'));
  const { child: sim, ready } = await forkPart('./sim-part.ts', {});
  const { url } = ready as { url: string };
  const config = join(dir, 'trawl.yaml');
  const keep = { settled: `${keepSecs}s`, failed: `${keepSecs}s` };
  const limits = { runs: 2_000, requestsPerSecond: 100_000 };
  writeFileSync(
    config,
    stringify({
      poll: { interval: '1s' },
      keep,
      servers: { apify: { url, token: 'bench', tools: [tool], limits } },
    }),
  );
  const client = new Redis(redis.url, { maxRetriesPerRequest: null });
  const queue = new Queue('scrape', { connection: client, prefix: '{trawl}' });
  try {
    const { child: worker } = await forkPart('./worker-part.ts', {
      config,
      redis: redis.url,
      // 25 hours otherwise.
      timing: { claimAfterMs: keepSecs * 1_000 },
    });
    await add(queue, 'warm', 10);
    await forgotten(client, queue);
    const before = await client.dbsize();
    const begun = performance.now();
    await add(queue, 'many', scrapes);
    let most = 0;
    const watch = setInterval(async () => {
      most = Math.max(most, await client.dbsize());
    }, 1_000);
    await forgotten(client, queue);
    clearInterval(watch);
    const after = await client.dbsize();
    worker.kill('SIGKILL');
    const took = Math.round((performance.now() - begun) / 1_000);
    process.stdout.write(
      `${scrapes} scrapes in ${took} s: ${before} keys before, ${most} at most, ${after} after (${after <= before * 1.05 ? 'within' : 'NOT within'} 5 %)\n`,
    );
  } finally {
    sim.kill();
    await queue.close();
    client.disconnect();
    redis.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function add(queue: Queue, prefix: string, count: number): Promise<void> {
  const job = (index: number) => ({
    name: 'scrape',
    data: {
      tool,
      input: {
        search: `${prefix}-${index}`,
        location: 'Austin, TX',
        sim: { runSecs: 0.5, readySecs: 0, lagSecs: 0, items: 1 },
      },
    },
    opts: { jobId: `default.${prefix}-${index}` },
  });
  for (let from = 0; from < count; from += 1_000) {
    await queue.addBulk(
      Array.from({ length: Math.min(1_000, count - from) }, (_, index) => job(from + index)),
    );
  }
}

/** No public job is left, and no key with a lifetime of a scrape. */
async function forgotten(client: Redis, queue: Queue): Promise<void> {
  for (;;) {
    await delay(1_000);
    const counts = await queue.getJobCounts();
    if (Object.values(counts).some((count) => count > 0)) continue;
    const own = await client.keys('{trawl}:attempt:*');
    const claims = await client.keys('{trawl}:claim:*');
    if (own.length + claims.length === 0) return;
  }
}
