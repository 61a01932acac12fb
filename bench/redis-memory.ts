import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { forkPart, startRedis } from './parts.js';

const scrapes = 20_000;
const tool = 'compass/crawler-google-places';

/** Redis memory of 20,000 submitted jobs like the design's example, parked with their start job; event streams apart. */
export async function redisMemory(): Promise<void> {
  const redis = await startRedis();
  const dir = mkdtempSync(join(tmpdir(), 'trawl-bench-'));
  const { child: sim, ready } = await forkPart('./sim-part.ts', {});
  const config = join(dir, 'trawl.yaml');
  const { url } = ready as { url: string };
  writeFileSync(config, stringify({ servers: { apify: { url, token: 'bench', tools: [tool] } } }));
  const client = new Redis(redis.url, { maxRetriesPerRequest: null });
  const queue = new Queue('scrape', { connection: client, prefix: '{trawl}' });
  try {
    const before = await used(client);
    // Paused: every start job stays where it is.
    await client.hset('{trawl}:server:apify', 'paused', Date.now());
    const { child: worker } = await forkPart('./worker-part.ts', { config, redis: redis.url });
    for (let base = 0; base < scrapes; base += 1_000) {
      await queue.addBulk(Array.from({ length: 1_000 }, (_, index) => job(base + index)));
    }
    for (;;) {
      const parked = await client.zcard('{trawl}:scrape:waiting-children');
      if (parked === scrapes) break;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    worker.kill('SIGKILL');
    // Buffers of connections and of the append-only file are not the scrapes'.
    await queue.close();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    for (const stream of await client.keys('{trawl}:*:events')) await client.del(stream);
    await client.del('{trawl}:events');
    const bytes = (await used(client)) - before;
    process.stdout.write(
      `${scrapes} parked scrapes: ${Math.round(bytes / scrapes)} bytes of Redis memory each\n`,
    );
  } finally {
    sim.kill('SIGKILL');
    client.disconnect();
    redis.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

function job(index: number): { name: string; data: object; opts: { jobId: string } } {
  const id = `plumbers-austin-${index}`;
  const batch = 'leads-2026-12-02';
  return {
    name: 'scrape',
    data: {
      id,
      batch,
      server: 'apify',
      tool,
      input: { searchStringsArray: ['plumbers'], locationQuery: 'Austin, Texas, USA' },
      deadline: '30m',
      expiresIn: '6h',
      priority: 3,
      retries: 1,
      minItems: 1,
      onEmpty: 'warn',
      options: { maxItems: 500, maxTotalChargeUsd: 2.5, timeout: '20m', memory: 4096 },
      fields: ['title', 'phone'],
      records: ['OUTPUT'],
      meta: { row: 17 },
    },
    opts: { jobId: `${batch}.${id}` },
  };
}

async function used(client: Redis): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
}
