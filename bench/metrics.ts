import { createHttpServer } from '../src/http/server.js';
import { createLogger } from '../src/logger.js';
import { fullMetrics, seriesOf } from '../test/metrics/full.js';

const scrapes = 50;
const well = { check: async () => ({ ok: true, checks: {} }) };

/** `/metrics` over HTTP with 50 pairs of server and tool in full use: bytes, series, and the time of a scrape. */
export async function metrics(): Promise<void> {
  const log = createLogger({ level: 'silent' });
  const health = { live: well, ready: well };
  const server = await createHttpServer({ host: '127.0.0.1', port: 0, metrics: fullMetrics(), health, log });
  const took: number[] = [];
  let text = '';
  const cpu = process.cpuUsage();
  for (let made = 0; made < scrapes; made += 1) {
    const began = performance.now();
    text = await (await fetch(`${server.url}/metrics`)).text();
    took.push(performance.now() - began);
  }
  const { user, system } = process.cpuUsage(cpu);
  await server.close();
  took.sort((a, b) => a - b);
  const at = (share: number) => `${(took[Math.floor(share * (scrapes - 1))] ?? 0).toFixed(1)} ms`;
  console.log(`series   ${seriesOf(text)} of 50 pairs of server and tool`);
  console.log(`size     ${Math.round(text.length / 1024)} KB`);
  // The reader's share is in it. On a busy machine only this means something.
  console.log(`CPU      ${((user + system) / 1000 / scrapes).toFixed(1)} ms a scrape`);
  console.log(`scrape   ${at(0.5)} median, ${at(0.9)} at 90 %, ${at(1)} at most, of ${scrapes}`);
}
