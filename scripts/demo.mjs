#!/usr/bin/env node
// `npm run demo`: a simulated Apify server, a private Redis and one `trawl run` over the 40 scrapes of
// demo/businesses.ndjson, then a check that each ended as it was meant to. Scrapes nothing, costs nothing.
// Exit codes: 0 all as expected · 1 not so · 2 something is missing · 4 interrupted.
// Only syntax that a Node too old for Trawl reads: the first step is the one that says so.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const startedAt = Date.now();
const ensureRedis = fileURLToPath(new URL('./ensure-redis.mjs', import.meta.url));
const ready = spawnSync(process.execPath, [ensureRedis], { stdio: 'inherit' });

if (ready.status === 0) {
  import('./demo/main.mjs').then(async (demo) => {
    process.exitCode = await demo.main(startedAt);
  });
} else {
  process.exitCode = ready.status === null ? 4 : ready.status;
}
