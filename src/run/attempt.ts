import type { Outcome } from '../scrape/types.js';

/**
 * The state of one attempt, and how it may move. `src/run` decides and does nothing else: no I/O, no clock, no BullMQ,
 * no MCP. Time comes in as an argument (milliseconds since 1970).
 *
 * ```
 *   queued ──► starting ──► running ──────────────► reading ──► decided ──► done
 *     │            │           │   (final status)      ▲           ▲
 *     │            │           └──► aborting ──────────┘           │
 *     │            │  deadline, cancel   (final status)            │
 *     └────────────┴───────────────────────────────────────────────┘
 *       expired, cancelled, rejected, start_unknown, lost, errored
 * ```
 * A phase never goes back. `starting` without an intent is a start that provably had no effect and may be made again.
 * The next attempt begins only from `decided` (retries) or `done` (an operator's retry), as a new number `n`.
 */
export const phases = ['queued', 'starting', 'running', 'aborting', 'reading', 'decided', 'done'] as const;
export type Phase = (typeof phases)[number];

/** Position in the lifecycle; scripts compare these numbers, so the order above is part of the stored format. */
export function phaseRank(phase: Phase): number {
  return phases.indexOf(phase);
}

/** Why we abort a run. */
export type AbortReason = 'deadline' | 'cancel' | 'orphan';

/** One slice of a dataset: page `index` holds exactly the items `offset … offset + limit - 1`. */
export interface Slice {
  readonly index: number;
  readonly offset: number;
  readonly limit: number;
}

/** What was decided about an attempt, before it is published. */
export interface Decision {
  readonly outcome: Outcome;
  readonly message: string;
  readonly warnings: readonly string[];
  readonly finishedAt: number;
}

/** The part of a scrape that later stages need, kept beside the state so that they need not load the input again. */
export interface RunSpec {
  readonly batch: string;
  readonly id: string;
  readonly server: string;
  readonly tool: string;
  readonly deadlineMs: number;
  readonly minItems: number;
  readonly onEmpty: 'warn' | 'fail' | 'retry';
  readonly retries: number;
  readonly fields: readonly string[];
  readonly records: readonly string[];
  readonly maxItems: number | null;
  readonly maxTotalChargeUsd: number | null;
}

/** One attempt as the store holds it. null: not known yet. Times are milliseconds since 1970, by our clock. */
export interface Attempt {
  /** `<batch>.<id>`. */
  readonly scrape: string;
  /** BullMQ id of the public job, which differs from `scrape` for jobs other programs named. */
  readonly jobId: string;
  readonly n: number;
  readonly phase: Phase;
  readonly submittedAt: number;
  readonly digest: string;
  readonly spec: RunSpec | null;
  /** When somebody asked for the scrape to be cancelled. */
  readonly cancelledAt: number | null;
  /** When the start call under way was made; null when none is, or its answer is known. */
  readonly intentAt: number | null;
  /** Set when the answer of a start was lost: what is being done about it. */
  readonly ambiguousSince: number | null;
  /** What the start call under way asks for: its public job may be removed before its run is known, or found. */
  readonly asked: { readonly tool: string; readonly input: Readonly<Record<string, unknown>> } | null;
  readonly startedAt: number | null;
  readonly deadlineAt: number | null;
  readonly runId: string | null;
  readonly datasetId: string | null;
  readonly storeId: string | null;
  readonly status: string | null;
  readonly statusMessage: string | null;
  /** The server's clock minus ours can be anything; this is the run's start by the server's clock. */
  readonly serverStartedAt: number | null;
  /** When the start's answer came, by our clock. */
  readonly repliedAt: number | null;
  /** No earlier than the run's real end, by our clock. */
  readonly endedAt: number | null;
  readonly polls: number;
  readonly pollFailures: number;
  /** The looks at its run, as `src/run/looks.ts` writes them; null before the first. */
  readonly looks: string | null;
  /** When the next poll is due; null before the first. BullMQ keeps no such time of a job that comes back. */
  readonly pollAt: number | null;
  readonly itemCount: number | null;
  readonly usageUsd: number | null;
  /** Spent by earlier attempts of the same scrape. */
  readonly usageBefore: number | null;
  /** Other places that hold something, for the message of an empty run. */
  readonly elsewhere: readonly string[];
  readonly abort: AbortReason | null;
  readonly abortTries: number;
  /** The slice being read; null before the first. */
  readonly slice: Slice | null;
  readonly pages: number;
  readonly items: number;
  readonly bytes: number;
  readonly reads: number;
  readonly recordsDone: number;
  readonly warnings: readonly string[];
  /** First time in a row that the server said it does not know the run. */
  readonly unknownSince: number | null;
  readonly unknownTimes: number;
  /** Faults of ours in a row on this attempt; too many settle it as `errored`. */
  readonly faults: number;
  /** Crashes counted by BullMQ on the present stage's job when the attempt last got on: `<stage>:<count>`. */
  readonly stallBase: string | null;
  readonly decision: Decision | null;
}
