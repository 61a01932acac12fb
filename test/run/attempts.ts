import type { CallFailure, CallResult, PageView, RunView } from '../../src/mcp/port.js';
import type { Attempt, RunSpec } from '../../src/run/attempt.js';

/** 2026-12-01T12:00:00Z; cases are written as distances from it. */
export const t0 = Date.UTC(2026, 11, 1, 12);

export function spec(over: Partial<RunSpec> = {}): RunSpec {
  return {
    batch: 'default',
    id: 'a',
    server: 'apify',
    tool: 'acme/pages',
    deadlineMs: 1_800_000,
    minItems: 1,
    onEmpty: 'warn',
    retries: 0,
    fields: [],
    records: [],
    maxItems: null,
    maxTotalChargeUsd: null,
    ...over,
  };
}

/** An attempt that has just been accepted. */
export function attempt(over: Partial<Attempt> = {}): Attempt {
  return {
    scrape: 'default.a',
    jobId: 'default.a',
    n: 1,
    phase: 'queued',
    submittedAt: t0,
    digest: 'digest',
    spec: null,
    cancelledAt: null,
    intentAt: null,
    ambiguousSince: null,
    asked: null,
    startedAt: null,
    deadlineAt: null,
    runId: null,
    datasetId: null,
    storeId: null,
    status: null,
    statusMessage: null,
    serverStartedAt: null,
    repliedAt: null,
    endedAt: null,
    polls: 0,
    pollAt: null,
    pollFailures: 0,
    looks: null,
    itemCount: null,
    usageUsd: null,
    usageBefore: null,
    elsewhere: [],
    abort: null,
    abortTries: 0,
    slice: null,
    pages: 0,
    items: 0,
    bytes: 0,
    reads: 0,
    recordsDone: 0,
    warnings: [],
    unknownSince: null,
    unknownTimes: 0,
    faults: 0,
    stallBase: null,
    decision: null,
    ...over,
  };
}

/** An attempt whose run started at `t0` with half an hour to go. */
export function running(over: Partial<Attempt> = {}): Attempt {
  return attempt({
    phase: 'running',
    spec: spec(),
    startedAt: t0,
    deadlineAt: t0 + 1_800_000,
    runId: 'run1',
    datasetId: 'ds1',
    storeId: 'kv1',
    status: 'RUNNING',
    serverStartedAt: t0 + 3_600_000,
    repliedAt: t0 + 1_000,
    ...over,
  });
}

/** An attempt whose run ended at `t0 + 60 s`. */
export function reading(over: Partial<Attempt> = {}): Attempt {
  return running({ phase: 'reading', status: 'SUCCEEDED', endedAt: t0 + 60_000, ...over });
}

export function run(over: Partial<RunView> = {}): RunView {
  return {
    runId: 'run1',
    status: 'RUNNING',
    final: false,
    statusMessage: null,
    startedAtMs: t0 + 3_600_000,
    finishedAtMs: null,
    datasetId: 'ds1',
    itemCount: null,
    storeId: 'kv1',
    recordKeys: [],
    otherDatasets: [],
    usageUsd: null,
    ...over,
  };
}

export function failure(over: Partial<CallFailure> = {}): { ok: false; failure: CallFailure } {
  return {
    ok: false,
    failure: {
      kind: 'network_error',
      message: 'cut',
      rpcCode: null,
      httpStatus: null,
      retryAfterMs: null,
      apiErrorType: null,
      refusal: 'none',
      holdReason: null,
      notFound: false,
      noEffect: false,
      ...over,
    },
  };
}

export function ok<T>(value: T): CallResult<T> {
  return { ok: true, value };
}

export function page(lines: readonly string[], totalItemCount: number | null): CallResult<PageView> {
  const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
  return ok({ lines, totalItemCount, bytes });
}

/** Items `from … from + count - 1`, each its own number. */
export function lines(from: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(from + index));
}
