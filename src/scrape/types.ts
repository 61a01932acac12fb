/** What a producer asked for, validated and with every default filled in (design A2). Durations are milliseconds. */
export interface Scrape {
  readonly id: string;
  readonly batch: string;
  /** A configured server's name. */
  readonly server: string;
  /** Canonical Actor name `user/name`, whichever way the producer wrote it. */
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly deadlineMs: number;
  /** Bound on the wait in the queue, counted from submission; null: none. */
  readonly expiresInMs: number | null;
  /** 0 (first) to 7. */
  readonly priority: number;
  readonly retries: number;
  readonly minItems: number;
  readonly onEmpty: 'warn' | 'fail' | 'retry';
  readonly options: RunOptions;
  readonly fields: readonly string[];
  readonly records: readonly string[];
  readonly meta: unknown;
}

/** Options of one run; what is absent is the server's default. */
export interface RunOptions {
  readonly maxItems?: number;
  readonly maxTotalChargeUsd?: number;
  readonly timeoutMs?: number;
  /** MB. */
  readonly memory?: number;
  readonly build?: string;
}

export const outcomes = [
  'succeeded',
  'empty',
  'low_count',
  'capped',
  'failed',
  'deadline_exceeded',
  'cancelled',
  'expired',
  'rejected',
  'start_unknown',
  'lost',
  'errored',
] as const;
export type Outcome = (typeof outcomes)[number];

/** The document a settled scrape leaves: BullMQ return value, `progress`, event data, and `outcome.json` (design A4). */
export interface OutcomeDocument {
  readonly id: string;
  readonly batch: string;
  readonly server: string;
  readonly tool: string;
  readonly outcome: Outcome;
  /** One plain sentence a person can act on. */
  readonly message: string;
  readonly runId: string | null;
  readonly datasetId: string | null;
  readonly runStatus: string | null;
  readonly statusMessage: string | null;
  readonly items: number;
  readonly pages: number;
  readonly bytes: number;
  /** null, never 0, when unknown. */
  readonly usageUsd: number | null;
  /** 1 for the first. */
  readonly attempt: number;
  readonly polls: number;
  /** ISO 8601, UTC. */
  readonly submittedAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string;
  readonly durationSeconds: number;
  /** Where the items are; null when nothing was written. */
  readonly destination: string | null;
  readonly warnings: readonly string[];
  readonly meta: unknown;
}
