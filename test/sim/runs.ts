import type { ActorSpec, ItemShape } from './actors/actor.js';
import type { ItemSource } from './items.js';
import type { CallOptions, RunPlan } from './plan.js';
import type { EndStatus, SteeredFault } from './steering.js';

/**
 * A run has no timer: its state is computed from its start, its plan and the clock whenever somebody asks.
 *
 *   READY ──readyMs──► RUNNING ──totalMs──► SUCCEEDED | FAILED | TIMED-OUT | ABORTED
 *                         └─abort─► ABORTING ──abortMs──► ABORTED
 *
 * Only `endAt`, `endStatus` and `abortedAt` change after the start, and only through `abortRun` and `finishRun`.
 */
export interface Run {
  readonly seq: number;
  readonly id: string;
  readonly actor: ActorSpec;
  /** The input as JSON, exactly as it came. */
  readonly input: string;
  readonly options: CallOptions;
  readonly memoryMb: number;
  readonly startedAt: number;
  readonly plan: RunPlan;
  readonly faults: readonly SteeredFault[];
  endAt: number;
  endStatus: EndStatus;
  statusMessage: string | null;
  items: number;
  abortedAt: number | null;
  /** What its items look like; made when first needed. */
  shape: ItemShape | null;
  /** Calls that wait for a change; woken when somebody aborts or finishes the run. */
  readonly waiters: Set<() => void>;
}

export type RunStatus = EndStatus | 'READY' | 'RUNNING' | 'TIMING-OUT' | 'ABORTING';

export function statusOf(run: Run, now: number): RunStatus {
  if (now >= run.endAt) return run.endStatus;
  if (run.abortedAt !== null) return 'ABORTING';
  if (run.endStatus === 'TIMED-OUT' && now >= run.endAt - run.plan.timingOutMs) return 'TIMING-OUT';
  return now < run.startedAt + run.plan.readyMs ? 'READY' : 'RUNNING';
}

export const isFinal = (run: Run, now: number): boolean => now >= run.endAt;

/** Milliseconds from `now` to the next change of status by itself; null: none to come. */
export function nextChangeIn(run: Run, now: number): number | null {
  if (now >= run.endAt) return null;
  const readyAt = run.startedAt + run.plan.readyMs;
  const at = run.abortedAt === null && now < readyAt && readyAt < run.endAt ? readyAt : run.endAt;
  return at - now;
}

/** Items written by `now`, lag aside: they come evenly over the run. */
function written(run: Run, items: number, now: number): number {
  const until = Math.min(now, run.endAt);
  if (until >= run.startedAt + run.plan.totalMs || (now >= run.endAt && run.abortedAt === null)) return items;
  return Math.min(items, Math.floor((items * (until - run.startedAt)) / run.plan.totalMs));
}

/** A dataset as it looks from outside: the count that metadata shows and the items a read can reach. */
export interface DatasetView {
  readonly id: string;
  readonly alias: string;
  /** null: the metadata cannot be read. */
  readonly itemCount: number | null;
  readonly total: number;
  readonly readable: number;
}

export function viewDataset(run: Run, alias: string, now: number): DatasetView | null {
  const index = run.plan.otherDatasets.findIndex((other) => other.alias === alias);
  if (alias !== 'default' && index < 0) return null;
  const planned = alias === 'default' ? run.items : (run.plan.otherDatasets[index]?.items ?? 0);
  const real = written(run, planned, now);
  const id = datasetId(run, index);
  const lagging = now >= run.endAt && now < run.endAt + run.plan.lagMs;
  const shown = lagging ? shownInLag(run, real) : { total: real, readable: real };
  return { id, alias, itemCount: run.plan.noItemCount ? null : shown.total, ...shown };
}

function shownInLag(run: Run, real: number): { total: number; readable: number } {
  switch (run.plan.lagMode) {
    case 'zero':
      return { total: 0, readable: 0 };
    case 'short':
      return { total: Math.floor(real * 0.6), readable: Math.floor(real * 0.6) };
    case 'count':
      return { total: 0, readable: real };
    default:
      return run.plan.lagMode satisfies never;
  }
}

/** `ds<run id>` for the default dataset, `d0<run id>`, `d1<run id>`, … for the others. */
function datasetId(run: Run, index: number): string {
  return index < 0 ? `ds${run.id}` : `d${index.toString(36)}${run.id}`;
}

export const storeIdOf = (run: Run): string => `kv${run.id}`;

/** The run id inside a dataset or store id, and which dataset it is. */
export function parseStorageId(id: string): { runId: string; index: number } {
  const mark = id.charAt(1);
  return { runId: id.slice(2), index: mark === 's' || mark === 'v' ? -1 : Number.parseInt(mark, 36) };
}

export function aliasAt(run: Run, index: number): string | null {
  return index < 0 ? 'default' : (run.plan.otherDatasets[index]?.alias ?? null);
}

export function shapeOf(run: Run): ItemShape {
  run.shape ??= run.actor.shape(JSON.parse(run.input) as Record<string, unknown>);
  return run.shape;
}

export function itemSource(run: Run, alias: string): ItemSource {
  const shape = shapeOf(run);
  return {
    shape,
    runId: run.id,
    alias,
    bytes: run.plan.itemBytes,
    errorRows: alias === 'default' ? run.plan.errorRows : 0,
    restLength: shape.rest(0).length,
  };
}

/** USD spent by `now`; it grows with the run, and by its last tenth only `usageLagMs` after the end. */
export function usageOf(run: Run, now: number): number | null {
  const full = run.plan.usageUsd;
  if (full === null) return null;
  const elapsed = Math.min(now, run.endAt) - run.startedAt;
  const share = run.plan.totalMs === 0 ? 1 : Math.min(1, elapsed / run.plan.totalMs);
  const late = now >= run.endAt && now < run.endAt + run.plan.usageLagMs ? 0.9 : 1;
  return Math.round(full * share * late * 1e6) / 1e6;
}

/** Keys of the run's key-value store in the order the API lists them. */
export function recordKeys(run: Run): string[] {
  return ['INPUT', ...Object.keys(run.plan.records)].sort();
}

/** Aborts; no effect on a run that is final or already aborting (abort-finished-run.json). */
export function abortRun(run: Run, now: number, lingerMs: number): void {
  if (now >= run.endAt || run.abortedAt !== null) return;
  run.abortedAt = now;
  run.endAt = now + lingerMs;
  run.endStatus = 'ABORTED';
  wake(run);
}

/** Ends a run that is under way at this moment, as an operator of the simulator. */
export function finishRun(run: Run, now: number, status: EndStatus, items: number | null): boolean {
  if (now >= run.endAt) return false;
  run.items = items ?? run.items;
  run.endAt = now;
  run.endStatus = status;
  wake(run);
  return true;
}

function wake(run: Run): void {
  for (const waiter of [...run.waiters]) waiter();
}
