import { growth } from './growth.js';
import { lifecycle } from './lifecycle.js';
import { metrics } from './metrics.js';
import { redisMemory } from './redis-memory.js';

/** Measurements, as ratios against a baseline of the same run where there is one; never part of a test. */
const benches: Record<string, () => Promise<void>> = {
  growth,
  lifecycle,
  metrics,
  'redis-memory': redisMemory,
};

const name = process.argv[2] ?? '';
const bench = benches[name];
if (bench === undefined) {
  process.stderr.write(`usage: npm run bench -- ${Object.keys(benches).join('|')}\n`);
  process.exitCode = 2;
} else {
  await bench();
}
