import type { FaultRule } from '../sim/index.js';
import { hash32, seeded } from '../sim/random.js';

/** Faults that the harness brings about itself. */
export const harnessFaults = [
  'sigkill',
  'sigstop',
  'sigterm',
  'redis_restart',
  'redis_cut',
  'redis_stall',
  'server_cut',
  'server_stall',
  'disk_refuses',
] as const;
export type HarnessFault = (typeof harnessFaults)[number];

type Rule = Pick<FaultRule, 'op' | 'ms' | 'retryAfter'>;
type Ops = readonly NonNullable<FaultRule['op']>[];

const anyCall: Ops = ['poll', 'poll', 'poll', 'read', 'read', 'start', 'abort', 'record', 'reconcile', 'any'];
/** Unanswered for minutes at the call's own timeout, so that they stay few where many calls wait for them. */
const waited: Ops = ['poll', 'start', 'start'];

/** Faults of the simulator's answers, on which calls, and how many strike at a time. */
export const answerFaults = {
  reset_before: { ops: anyCall, burst: 1 },
  hang: { ops: waited, burst: 1 },
  // Each cools the server down for longer than the one before, so they come at once, as they do in life.
  http_429: { ops: ['any'], burst: 6 },
  http_500: { ops: anyCall, burst: 1 },
  http_502: { ops: anyCall, burst: 1 },
  http_503: { ops: anyCall, burst: 1 },
  session_lost: { ops: anyCall, burst: 1 },
  rpc_invalid_params: { ops: anyCall, burst: 1 },
  rpc_internal: { ops: anyCall, burst: 1 },
  tool_error: { ops: anyCall, burst: 1 },
  accepted: { ops: anyCall, burst: 1 },
  reset_after: { ops: anyCall, burst: 1 },
  drop_after: { ops: waited, burst: 1 },
  http_500_after: { ops: anyCall, burst: 1 },
  run_id_lost: { ops: ['start'], burst: 1 },
  not_json: { ops: anyCall, burst: 1 },
  cut: { ops: anyCall, burst: 1 },
  cut_end: { ops: anyCall, burst: 1 },
  huge: { ops: ['read', 'read', 'poll'], burst: 1 },
  wrong_shape: { ops: anyCall, burst: 1 },
  wrong_id: { ops: anyCall, burst: 1 },
  task_result: { ops: anyCall, burst: 1 },
} as const satisfies Partial<Record<FaultRule['kind'], { ops: Ops; burst: number }>>;
export type AnswerFault = keyof typeof answerFaults;

export type PlannedFault =
  | {
      readonly at: number;
      readonly kind: HarnessFault;
      readonly worker: number;
      /** How long it lasts, where it lasts. */
      readonly ms: number;
    }
  | { readonly at: number; readonly kind: AnswerFault; readonly rule: FaultRule };

/** How much of everything: occurrences a minute of each kind. */
export interface Rates {
  readonly harness: Readonly<Record<HarnessFault, number>>;
  readonly answers: number;
  /** Spans in ms, low and high. */
  readonly stopMs: readonly [number, number];
  readonly stallMs: readonly [number, number];
}

export const usualRates: Rates = {
  harness: {
    sigkill: 2.4,
    sigstop: 2.2,
    sigterm: 2.2,
    redis_restart: 2.2,
    redis_cut: 2.4,
    redis_stall: 2.2,
    server_cut: 2.4,
    server_stall: 2.2,
    disk_refuses: 2.2,
  },
  answers: 2.4,
  // Longer than the lock of 15 s, and not much: three workers have to be there most of the time.
  stopMs: [16_000, 19_000],
  stallMs: [1_000, 7_000],
};

/** Fewer than this of a kind, and the run has proved nothing about it: 20 in 10 minutes. */
export const leastOfEach = (minutes: number): number => Math.floor(2 * minutes);

/** The same seed gives the same plan; when exactly a fault meets which call is up to the processes. */
export function planFaults(seed: number, minutes: number, workers: number, rates: Rates): PlannedFault[] {
  const random = seeded(hash32('nemesis', seed));
  const span = minutes * 60_000;
  const between = ([low, high]: readonly [number, number]) => Math.round(low + random() * (high - low));
  /** Spread over the run, each somewhere in its own part of it. */
  const times = (count: number) =>
    Array.from({ length: count }, (_, index) =>
      Math.round(1_500 + ((index + random()) / count) * (span - 3_000)),
    );
  const plan: PlannedFault[] = [];
  for (const kind of harnessFaults) {
    for (const at of times(Math.ceil(rates.harness[kind] * minutes))) {
      const worker = Math.floor(random() * workers);
      plan.push({ at, kind, worker, ms: between(spanOf(kind, rates)) });
    }
  }
  for (const kind of Object.keys(answerFaults) as AnswerFault[]) {
    const { ops, burst } = answerFaults[kind];
    for (const at of times(Math.ceil((rates.answers * minutes) / burst))) {
      const op = ops[Math.floor(random() * ops.length)] ?? 'any';
      const rule: FaultRule = {
        kind,
        op,
        times: burst,
        // Faults are planned by the clock. Where few calls are made (the trials of a held server) they would pile up and meet each.
        ...(burst === 1 ? { spacing: 2 } : {}),
        ...extrasOf(kind, random()),
      };
      plan.push({ at, kind, rule });
    }
  }
  return plan.sort((a, b) => a.at - b.at);
}

function spanOf(kind: HarnessFault, rates: Rates): readonly [number, number] {
  switch (kind) {
    case 'sigstop':
      return rates.stopMs;
    case 'redis_stall':
    case 'server_stall':
      return rates.stallMs;
    case 'redis_restart':
      return [200, 2_000];
    case 'disk_refuses':
      return [500, 5_000];
    case 'sigkill':
    case 'sigterm':
    case 'redis_cut':
    case 'server_cut':
      return [0, 0];
    default:
      return kind satisfies never;
  }
}

function extrasOf(kind: AnswerFault, draw: number): Rule {
  if (kind === 'http_429' || kind === 'http_503') {
    return { retryAfter: ([1, 2, 'date', 'none'] as const)[Math.floor(draw * 4)] ?? 1 };
  }
  return {};
}
