import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Keys } from '../../src/queue/names.js';
import type { Timing } from '../../workers/timing.js';
import { RedisProcess } from '../redis/redis-process.js';
import { hash32, seeded } from '../sim/random.js';
import { check } from './checker.js';
import { type Evidence, gather } from './evidence.js';
import type { Verdict } from './findings.js';
import type { Guard } from './guards.js';
import { type Mix, maps, usualMix, yellowPages } from './jobs.js';
import { Disk, Nemesis } from './nemesis.js';
import { leastOfEach, planFaults, type Rates, usualRates } from './plan.js';
import { Producer, prefix, server } from './producer.js';
import { TcpProxy } from './proxy.js';
import { faultCounts, report } from './report.js';
import { SimProcess } from './sim-process.js';
import { buildWorker, WorkerProcess } from './worker-processes.js';

export interface ChaosOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly scrapes: number;
  readonly without: Guard | null;
  readonly workers: number;
  readonly mix: Mix;
  readonly rates: Rates;
  readonly repeatHandOns: number;
  readonly timing: Partial<Timing>;
  /** How long all may take to come to rest once everything is whole again. */
  readonly restMs: number;
  /** Whether fewer than 20 faults of a kind in 10 minutes fail the run. */
  readonly everyKind: boolean;
  readonly say: (line: string) => void;
  readonly keep: boolean;
}

export const runsLimit = 80;

export function usualOptions(
  seed: number,
  minutes: number,
): Omit<ChaosOptions, 'say' | 'keep' | 'without' | 'scrapes'> {
  return {
    seed,
    minutes,
    workers: 3,
    mix: usualMix,
    rates: usualRates,
    repeatHandOns: 0.05,
    // A start that was frozen for 22 s and then took its whole timeout of 12 s is known to the list by then.
    timing: {
      certainAfterMs: 45_000,
      sendWithinMs: 20_000,
      // The checker reads at the end whose runs they were.
      claimAfterMs: 24 * 3_600_000,
      unknownAfterMs: 240_000,
      // Scrapes removed before their start are found within 16 turns of this: too long for a short run.
      ...(minutes < 5 ? { reapEveryMs: 5_000 } : {}),
    },
    restMs: 420_000,
    everyKind: true,
  };
}

export interface ChaosResult {
  readonly report: Readonly<Record<string, unknown>>;
  readonly verdict: Verdict;
  readonly passed: boolean;
}

/** One run from the first scrape to the verdict. What is left of it stays on disk when it failed, or `keep` is set. */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const began = Date.now();
  const { seed, say } = options;
  const dir = mkdtempSync(join(tmpdir(), `trawl-chaos-${seed}-`));
  const built = await buildWorker();
  const redis = await RedisProcess.start(...redisArguments);
  const tidy = () => {
    redis.signal('SIGKILL');
    built.remove();
  };
  process.once('exit', tidy);
  const sim = await SimProcess.start(seed);
  const disk = new Disk(dir);
  const proxy = await TcpProxy.open(sim.port);
  const workers = await openWorkers(options, built.file, dir, redis.port, proxy.port, disk.path);
  const producer = new Producer(redis.url, seed, options.mix);
  let passed = false;
  try {
    await Promise.all(workers.map((worker) => worker.start()));
    say(`working in ${dir}: ${workers.length} workers, Redis on ${redis.port}, simulator on ${sim.port}`);
    const spanMs = options.minutes * 60_000;
    const plan = planFaults(seed, options.minutes, workers.length, options.rates);
    const nemesis = new Nemesis(plan, { workers, redis, server: proxy, sim, disk });
    await Promise.all([nemesis.run(), producer.run(options.scrapes, spanMs)]);
    const healedAt = Date.now();
    say(
      `${producer.submitted.length} scrapes accepted, ${nemesis.struck.length} faults struck; all is whole`,
    );
    await rest(options, redis.url, sim, producer);
    const evidence = await gather({
      redisUrl: redis.url,
      sim,
      results: join(dir, 'disk'),
      submitted: producer.submitted,
      struck: nemesis.struck,
    });
    writeFileSync(join(dir, 'faults.json'), JSON.stringify({ plan, struck: nemesis.struck }));
    writeFileSync(join(dir, 'submitted.json'), JSON.stringify(producer.submitted));
    writeFileSync(join(dir, 'starts.json'), JSON.stringify(evidence.starts));
    const verdict = check(evidence, runsLimit);
    const breaches = [...verdict.breaches, ...processBreaches(options, workers, evidence)];
    passed = breaches.length === 0;
    const line = report({
      options,
      evidence,
      verdict,
      breaches,
      workers,
      producer,
      restMs: Date.now() - healedAt,
      wallMs: Date.now() - began,
    });
    return { report: line, verdict, passed };
  } finally {
    await Promise.all(workers.map((worker) => worker.close()));
    await proxy.close();
    await producer.close();
    await sim.stop();
    await redis.stop();
    process.off('exit', tidy);
    built.remove();
    if (passed && !options.keep) rmSync(dir, { recursive: true, force: true });
    else say(`logs and results: ${dir}`);
  }
}

/**
 * The private Redis of Trawl, but for `appendfsync`: with `everysec` a Redis that is killed while it syncs loses what it
 * acknowledged just then, which is its own promise and not ours.
 */
const redisArguments = [
  ...['--appendonly', 'yes', '--appendfsync', 'always'],
  ...['--maxmemory-policy', 'noeviction', '--hz', '100'],
];

async function openWorkers(
  options: ChaosOptions,
  entry: string,
  dir: string,
  redisPort: number,
  serverPort: number,
  results: string,
): Promise<WorkerProcess[]> {
  const { seed, timing, without, repeatHandOns } = options;
  const config = {
    prefix,
    servers: {
      [server]: {
        url: `http://127.0.0.1:${serverPort}/`,
        token: 'chaos-token-canary',
        tools: [yellowPages, maps],
        limits: { runs: runsLimit, requestsPerSecond: 500 },
      },
    },
    start: { timeout: '12s' },
    poll: { interval: '1s' },
    retry: { backoff: '1s' },
    limits: { answerBytes: 2_000_000 },
    results: { dir: results },
    http: { port: 0 },
    shutdown: { grace: '10s' },
    // Half the runs of the mix may be bad without a tool being at fault.
    brake: { badRatio: 1 },
  };
  return Promise.all(
    Array.from({ length: options.workers }, (_, index) => {
      const random = seeded(hash32(`page sizes ${index}`, seed));
      const pageBytes = () => 16_384 * 4 ** Math.floor(random() * 3);
      const settings = { timing, without, repeatHandOns };
      return WorkerProcess.open({ index, redisPort, settings, entry, dir, pageBytes, config });
    }),
  );
}

/** Waits until every batch is settled, no run is under way and no slot is held, at most `restMs`. */
async function rest(
  { restMs, say }: ChaosOptions,
  redisUrl: string,
  sim: SimProcess,
  producer: Producer,
): Promise<void> {
  const redis = new Redis(redisUrl);
  const keys = new Keys(prefix);
  const until = Date.now() + restMs;
  const owed = producer.submitted.filter(({ job }) => job.kind !== 'removed').length;
  let told = 0;
  try {
    while (Date.now() < until) {
      const batches = await Promise.all(['a', 'b', 'c'].map((x) => redis.hgetall(keys.batch(`chaos-${x}`))));
      const sum = (name: string) => batches.reduce((total, batch) => total + Number(batch[name] ?? 0), 0);
      const { inFlight } = await sim.stats();
      const slots = await redis.zcard(keys.slots(server));
      const settled = sum('settled');
      if (settled >= owed && settled === sum('submitted') && inFlight === 0 && slots === 0) {
        // Events, counters and public jobs follow each other closely; a last one may still be on its way.
        await delay(3_000);
        return;
      }
      if (Date.now() > told + 15_000) {
        told = Date.now();
        say(
          `${settled} of ${producer.submitted.length} settled, ${inFlight} runs under way, ${slots} slots held`,
        );
      }
      await delay(500);
    }
    say('not at rest in time');
  } finally {
    redis.disconnect();
  }
}

/** What the processes themselves did wrong, and whether enough was done to them. */
function processBreaches(
  { minutes, everyKind }: ChaosOptions,
  workers: readonly WorkerProcess[],
  evidence: Evidence,
): string[] {
  const breaches = workers.flatMap(({ crashes }) => crashes.map((crash) => `crashed: ${crash}`));
  if (!everyKind) return breaches;
  const least = leastOfEach(minutes);
  for (const [kind, count] of Object.entries(faultCounts(evidence))) {
    if (count < least) breaches.push(`tooFewFaults: ${kind} struck ${count} times, ${least} are needed`);
  }
  return breaches;
}
