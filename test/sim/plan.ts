import type { ActorSpec, Input } from './actors/actor.js';
import type { Conditions } from './conditions.js';
import { between, lognormal } from './random.js';
import type { EndStatus, LagMode, Steering } from './steering.js';

/** How a run will go if nobody interferes. Milliseconds of wall clock, counted from its start. */
export interface RunPlan {
  readonly readyMs: number;
  readonly totalMs: number;
  readonly timingOutMs: number;
  readonly status: EndStatus;
  readonly exitCode: number;
  readonly statusMessage: string | null;
  readonly items: number;
  readonly itemBytes: { readonly low: number; readonly high: number };
  readonly errorRows: number;
  readonly lagMs: number;
  readonly lagMode: LagMode;
  readonly noItemCount: boolean;
  readonly otherDatasets: readonly { readonly alias: string; readonly items: number }[];
  readonly records: Readonly<Record<string, unknown>>;
  readonly usageUsd: number | null;
  readonly usageLagMs: number;
  readonly abortMs: number | null;
}

/** What the start call asked for beside the input (`callOptions`); only `call-actor` carries it. */
export interface CallOptions {
  readonly memory?: number;
  readonly timeout?: number;
  readonly build?: string;
  readonly maxItems?: number;
  readonly maxTotalChargeUsd?: number;
}

export interface PlanContext {
  readonly actor: ActorSpec;
  readonly input: Input;
  readonly options: CallOptions;
  readonly steering: Steering;
  readonly conditions: Conditions;
  readonly speed: number;
  readonly random: () => number;
  /** Milliseconds since the simulator's start (or reset), for the bad night. */
  readonly upMs: number;
}

type Fate = 'good' | 'empty' | 'failed' | 'failed_with_items' | 'timed_out';

/** Draws a run from the mix, the Actor's figures and the job's wishes; wishes win. */
export function planRun(context: PlanContext): RunPlan {
  const { actor, input, options, steering, conditions, speed, random } = context;
  // A job that steers anything gets what it says and no dice beside it.
  const fate = Object.keys(steering).length > 0 ? 'good' : drawFate(context);
  const fixed = conditions.mix === 'fixed';
  const timing = actor.timing(input);
  const drawnSecs = fixed ? timing.median : lognormal(random, timing.median, timing.sigma);
  const drawnReady = fixed ? 2 : 2 + random() * 10;
  const scaled = (secs: number) => (secs * 1000) / speed;
  const steered = steering.runSecs !== undefined;
  const readyMs = secsOf(steering.readySecs) ?? (steered ? 0 : scaled(drawnReady));
  let totalMs = secsOf(steering.runSecs) ?? scaled(drawnReady + drawnSecs);
  let status = steering.status ?? statusOf(fate);
  if (status === 'TIMED-OUT' && !steered) totalMs *= 2;

  const range = actor.items(input);
  const drawnItems = fixed ? range.median : between(random, range.low, range.high);
  const items = steering.items ?? itemsOf(fate, drawnItems);
  let itemCount = conditions.emptyTools.includes(actor.name) ? 0 : items;
  const usageUsd = usageOf(context, itemCount, totalMs);
  let statusMessage = steering.statusMessage ?? messageOf(fate);
  if (conditions.failingTools.includes(actor.name)) {
    status = 'FAILED';
    statusMessage = 'Upstream changed its page layout.';
  }

  const cap = options.maxTotalChargeUsd;
  let usage = usageUsd;
  if (cap !== undefined && usageUsd !== null && usageUsd > cap) {
    const share = cap / usageUsd;
    totalMs *= share;
    itemCount = Math.floor(itemCount * share);
    usage = cap;
    status = 'ABORTED';
    statusMessage = 'The run reached its maximum total charge and was aborted.';
  }
  const timeoutMs = options.timeout ? options.timeout * 1000 : Number.POSITIVE_INFINITY;
  if (totalMs > timeoutMs) {
    const share = timeoutMs / totalMs;
    itemCount = Math.floor(itemCount * share);
    usage = usage === null ? null : usage * share;
    totalMs = timeoutMs;
    status = 'TIMED-OUT';
  }

  const lags = !fixed && random() < 1 / 3;
  const lagDraw = random() * 5;
  const modes = ['zero', 'short', 'count'] as const;
  const modeDraw = modes[between(random, 0, 2)] as LagMode;
  return {
    readyMs: Math.min(readyMs, totalMs),
    totalMs,
    timingOutMs: secsOf(steering.timingOutSecs) ?? 0,
    status,
    exitCode: steering.exitCode ?? (status === 'SUCCEEDED' ? 0 : 1),
    statusMessage,
    items: itemCount,
    itemBytes: sizeOf(steering, actor.bytes(input)),
    errorRows: steering.errorRows ?? 0,
    lagMs: secsOf(steering.lagSecs) ?? (lags && !steered ? scaled(lagDraw) : 0),
    lagMode: steering.lagMode ?? (steering.lagSecs === undefined ? modeDraw : 'zero'),
    noItemCount: steering.noItemCount ?? false,
    otherDatasets: Object.entries(steering.otherDatasets ?? {}).map(([alias, count]) => ({
      alias,
      items: count,
    })),
    records: steering.records ?? actor.records,
    usageUsd: usage,
    usageLagMs: secsOf(steering.usageLagSecs) ?? 0,
    abortMs: secsOf(steering.abortSecs),
  };
}

function secsOf(secs: number | undefined): number | null {
  return secs === undefined ? null : secs * 1000;
}

function sizeOf(steering: Steering, natural: { low: number; high: number }): { low: number; high: number } {
  const bytes = steering.itemBytes;
  return bytes === undefined ? natural : { low: bytes, high: bytes };
}

/** A good night: 88 % with items, 5 % empty, 6 % FAILED (half of them with items), 1 % TIMED-OUT. */
function drawFate({ conditions, actor, upMs, speed, random }: PlanContext): Fate {
  const draw = random();
  const bad = random();
  if (conditions.mix === 'fixed') return 'good';
  if (conditions.mix === 'bad-night' && actor.name === conditions.badTool && upMs >= 60_000 / speed) {
    if (bad < 0.35) return 'empty';
    if (bad < 0.7) return 'failed';
  }
  if (draw < 0.88) return 'good';
  if (draw < 0.93) return 'empty';
  if (draw < 0.96) return 'failed';
  return draw < 0.99 ? 'failed_with_items' : 'timed_out';
}

function statusOf(fate: Fate): EndStatus {
  switch (fate) {
    case 'good':
    case 'empty':
      return 'SUCCEEDED';
    case 'failed':
    case 'failed_with_items':
      return 'FAILED';
    case 'timed_out':
      return 'TIMED-OUT';
    default:
      return fate satisfies never;
  }
}

function itemsOf(fate: Fate, drawn: number): number {
  switch (fate) {
    case 'good':
      return drawn;
    case 'empty':
    case 'failed':
      return 0;
    case 'failed_with_items':
    case 'timed_out':
      return Math.ceil(drawn / 2);
    default:
      return fate satisfies never;
  }
}

function messageOf(fate: Fate): string | null {
  switch (fate) {
    case 'good':
    case 'timed_out':
      return null;
    case 'empty':
      return 'Finished! Total 1 requests: 0 succeeded, 1 failed.';
    case 'failed':
    case 'failed_with_items':
      return 'The proxy answered 590 again and again.';
    default:
      return fate satisfies never;
  }
}

/** The recorded Actor costs a thousandth of a dollar a second; the others a start and each item. */
function usageOf({ actor, steering }: PlanContext, items: number, totalMs: number): number | null {
  if (steering.usageUsd !== undefined) return steering.usageUsd;
  return actor.price === null ? totalMs / 1e6 : actor.price.start + items * actor.price.item;
}
