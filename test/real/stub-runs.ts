/**
 * Runs of the stub: what the input asked for, and what a run looks like at a moment. Time comes in as an argument, and
 * nothing ticks: a run is worked out from when it started.
 */
export interface RunPlan {
  /** READY before it runs. */
  readonly readySecs: number;
  readonly durationSecs: number;
  readonly items: number;
  readonly outcome: 'SUCCEEDED' | 'FAILED' | 'TIMED-OUT' | 'ABORTED';
  /** How long after the end the dataset still says that it is empty. */
  readonly lagSecs: number;
  readonly statusMessage: string | null;
  /** How long an abort takes. */
  readonly abortSecs: number;
  /** Bytes of padding in each item. */
  readonly itemBytes: number;
  /** Bytes of padding in the item with this index alone. */
  readonly bigItem: { readonly index: number; readonly bytes: number } | null;
  readonly records: Readonly<Record<string, StubRecord>>;
}

export interface StubRecord {
  readonly contentType: string;
  /** Text, or base64 where `binary` says so. */
  readonly body: string;
  readonly binary?: boolean;
  /** In place of a body: that many zero bytes. An input has no room for a large one. */
  readonly bytes?: number;
}

const defaults: RunPlan = {
  readySecs: 0,
  durationSecs: 0,
  items: 0,
  outcome: 'SUCCEEDED',
  lagSecs: 0,
  statusMessage: null,
  abortSecs: 0,
  itemBytes: 0,
  bigItem: null,
  records: {},
};

/** The input of a run is the plan; keys that are no part of it are left alone. */
export function planOf(input: Readonly<Record<string, unknown>>): RunPlan {
  const known = Object.keys(defaults).filter((key) => input[key] !== undefined);
  return { ...defaults, ...Object.fromEntries(known.map((key) => [key, input[key]])) };
}

export interface StubRun {
  readonly id: string;
  readonly actorId: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly plan: RunPlan;
  readonly startedAtMs: number;
  /** Sent with the start. */
  readonly options: {
    readonly timeoutSecs: number;
    readonly memoryMbytes: number;
    readonly [key: string]: unknown;
  };
  readonly origin: string;
  abortedAtMs: number | null;
}

export const datasetIdOf = (runId: string) => `ds${runId}`;
export const storeIdOf = (runId: string) => `kv${runId}`;

/** By itself, aborts aside. */
function plannedEnd(run: StubRun): { atMs: number; status: RunPlan['outcome'] } {
  const { durationSecs, readySecs, outcome } = run.plan;
  const ownMs = run.startedAtMs + (readySecs + durationSecs) * 1000;
  const limitMs = run.startedAtMs + run.options.timeoutSecs * 1000;
  return ownMs <= limitMs ? { atMs: ownMs, status: outcome } : { atMs: limitMs, status: 'TIMED-OUT' };
}

export interface RunState {
  readonly status: 'READY' | 'RUNNING' | 'ABORTING' | RunPlan['outcome'];
  readonly finishedAtMs: number | null;
  /** Written so far. */
  readonly items: number;
  /** What the dataset admits to. */
  readonly visibleItems: number;
}

export function stateAt(run: StubRun, nowMs: number): RunState {
  const end = plannedEnd(run);
  const aborted = run.abortedAtMs !== null && run.abortedAtMs < end.atMs ? run.abortedAtMs : null;
  const stoppedAtMs = Math.min(nowMs, aborted ?? end.atMs);
  const finishedAtMs = aborted === null ? end.atMs : aborted + run.plan.abortSecs * 1000;
  const items = itemsAt(run, stoppedAtMs);
  if (nowMs < finishedAtMs) {
    const ready = nowMs < run.startedAtMs + run.plan.readySecs * 1000;
    const status = aborted !== null && nowMs >= aborted ? 'ABORTING' : ready ? 'READY' : 'RUNNING';
    return { status, finishedAtMs: null, items, visibleItems: run.plan.lagSecs > 0 ? 0 : items };
  }
  const visibleItems = nowMs < finishedAtMs + run.plan.lagSecs * 1000 ? 0 : items;
  return { status: aborted === null ? end.status : 'ABORTED', finishedAtMs, items, visibleItems };
}

/** They come evenly over the run. */
function itemsAt(run: StubRun, atMs: number): number {
  const { durationSecs, readySecs, items } = run.plan;
  const workedMs = atMs - run.startedAtMs - readySecs * 1000;
  if (workedMs >= durationSecs * 1000) return items;
  return Math.max(0, Math.floor((items * workedMs) / (durationSecs * 1000)));
}

export function itemAt(run: StubRun, index: number): Record<string, unknown> {
  const { bigItem, itemBytes } = run.plan;
  const bytes = bigItem?.index === index ? bigItem.bytes : itemBytes;
  const item = { idx: index, name: `Business ${index}`, phone: `+1-555-${String(index).padStart(4, '0')}` };
  return bytes > 0 ? { ...item, text: 'x'.repeat(bytes) } : item;
}
