import type { Evidence } from './evidence.js';
import type { Verdict } from './findings.js';
import { answerFaults, harnessFaults } from './plan.js';
import type { Producer } from './producer.js';
import type { ChaosOptions } from './run.js';
import type { WorkerProcess } from './worker-processes.js';

/** Breaches that are told in words; all of them are counted. */
const breachesTold = 20;

/** How often each kind of fault struck. */
export function faultCounts({ struck, stats, submitted, runs }: Evidence): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of harnessFaults) counts[kind] = struck.filter((fault) => fault.kind === kind).length;
  for (const kind of [...Object.keys(answerFaults), 'double_run'] as const) {
    counts[kind] = stats.faultsFired[kind as keyof typeof stats.faultsFired] ?? 0;
  }
  counts.cancel = submitted.filter(({ cancel }) => cancel !== null).length;
  counts.removal = submitted.filter(({ removedAt }) => removedAt !== null).length;
  counts.lagging_count = submitted.filter(({ job }) => job.kind === 'lag').length;
  counts.runs = runs.length;
  return counts;
}

/** The one line of JSON. */
export function report(of: {
  readonly options: ChaosOptions;
  readonly evidence: Evidence;
  readonly verdict: Verdict;
  readonly breaches: readonly string[];
  readonly workers: readonly WorkerProcess[];
  readonly producer: Producer;
  readonly restMs: number;
  readonly wallMs: number;
}): Record<string, unknown> {
  const { options, evidence, verdict, breaches, workers } = of;
  const outcomes: Record<string, number> = {};
  for (const { outcome } of evidence.disk.values()) {
    if (outcome !== null) outcomes[outcome.outcome] = (outcomes[outcome.outcome] ?? 0) + 1;
  }
  const cancels = evidence.submitted.flatMap(({ job, cancel }) => {
    const outcome = evidence.disk.get(job.key)?.outcome;
    if (cancel?.result !== 'cancelling' || outcome?.outcome !== 'cancelled') return [];
    return [Math.max(0, Date.parse(outcome.finishedAt) - cancel.at)];
  });
  const secondRuns = evidence.starts.flatMap(({ runId, at }) => {
    if (evidence.owners.has(runId ?? '')) return [];
    const abort = evidence.aborts.find((entry) => entry.runId === runId);
    return abort === undefined ? [] : [abort.at - at];
  });
  return {
    seed: options.seed,
    minutes: options.minutes,
    without: options.without,
    passed: breaches.length === 0,
    ...verdict.findings,
    outcomes,
    faults: faultCounts(evidence),
    seconds: {
      wall: seconds(of.wallMs),
      rest: seconds(of.restMs),
      redisRecovery: spread(redisRecoveries(evidence)),
      workerRecovery: spread(workers.flatMap(({ recoveries }) => recoveries)),
      sigterm: spread(workers.flatMap(({ stops }) => stops)),
      cancel: spread(cancels),
      secondRunAbort: spread(secondRuns),
    },
    producerRetries: of.producer.retries,
    breaches: breaches.length,
    firstBreaches: breaches.slice(0, breachesTold),
  };
}

/** From Redis being back to the server hearing of a worker again. */
function redisRecoveries({ struck, beats }: Evidence): number[] {
  return struck.flatMap(({ kind, to }) => {
    if (kind !== 'redis_restart') return [];
    const next = beats.find((at) => at >= to);
    return next === undefined ? [] : [next - to];
  });
}

function spread(values: readonly number[]): { count: number; p50: number; max: number } | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return {
    count: sorted.length,
    p50: seconds(sorted[Math.floor(sorted.length / 2)] ?? 0),
    max: seconds(sorted.at(-1) ?? 0),
  };
}

const seconds = (ms: number): number => Math.round(ms / 100) / 10;
