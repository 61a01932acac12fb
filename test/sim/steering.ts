import { type RefusalName, refusalNames } from './refusals.js';

/**
 * What a job may ask of its own run, under the reserved input key `sim` (documented in README.md). Seconds are wall
 * clock seconds: the simulator's `speed` does not touch them. What is absent is drawn from the Actor's own figures.
 */
export interface Steering {
  readonly runSecs?: number;
  readonly readySecs?: number;
  readonly timingOutSecs?: number;
  readonly items?: number;
  readonly itemBytes?: number;
  readonly errorRows?: number;
  readonly status?: EndStatus;
  readonly exitCode?: number;
  readonly statusMessage?: string;
  readonly lagSecs?: number;
  readonly lagMode?: LagMode;
  readonly noItemCount?: boolean;
  readonly otherDatasets?: Readonly<Record<string, number>>;
  readonly records?: Readonly<Record<string, unknown>>;
  /** null: the API gives no usage. */
  readonly usageUsd?: number | null;
  readonly usageLagSecs?: number;
  readonly abortSecs?: number;
  readonly refuse?: RefusalName;
  readonly refuseBare?: boolean;
  readonly refuseTimes?: number;
  readonly fault?: FaultKind;
  readonly faults?: readonly SteeredFault[];
}

export type EndStatus = 'SUCCEEDED' | 'FAILED' | 'TIMED-OUT' | 'ABORTED';
export const endStatuses: readonly EndStatus[] = ['SUCCEEDED', 'FAILED', 'TIMED-OUT', 'ABORTED'];

/**
 * What lags after the end: `zero`: counts read 0 and reads find nothing; `short`: counts and reads show 60 %;
 * `count`: counts read 0 while the items can be read.
 */
export type LagMode = 'zero' | 'short' | 'count';
const lagModes: readonly LagMode[] = ['zero', 'short', 'count'];

export interface SteeredFault {
  readonly op: SimOperation;
  readonly kind: FaultKind;
  readonly times?: number;
  readonly ms?: number;
}

export const simOperations = [
  'connect',
  'list_tools',
  'start',
  'poll',
  'read',
  'abort',
  'record',
  'reconcile',
  'other',
] as const;
/** The operations of the product's port, by what they are on the wire. */
export type SimOperation = (typeof simOperations)[number];

/** Faults that strike before the work, so that nothing has happened. */
export const faultsBefore = [
  'reset_before',
  'hang',
  'http_401',
  'http_403',
  'http_404',
  'http_429',
  'http_500',
  'http_502',
  'http_503',
  'http_413',
  'http_302',
  'session_lost',
  'accepted',
  'rpc_invalid_params',
  'rpc_internal',
  'tool_error',
  'unauthorized',
  'run_not_found',
  'slow',
] as const;
/** Faults that strike after the work was done: only the answer suffers. */
export const faultsAfter = [
  'reset_after',
  'drop_after',
  'http_500_after',
  'run_id_lost',
  'not_json',
  'cut',
  'cut_end',
  'huge',
  'wrong_shape',
  'wrong_id',
  'task_result',
  'no_structured',
  'sentence_only',
] as const;
/** `double_run`: the call makes two runs and answers with the second. */
export const faultKinds = [...faultsBefore, ...faultsAfter, 'double_run'] as const;
export type FaultKind = (typeof faultKinds)[number];

/** A wish that cannot be granted; the start is refused with this sentence. */
export class SteeringError extends Error {}

type Check = (value: unknown) => boolean;
const num =
  (low: number, high: number): Check =>
  (value) =>
    typeof value === 'number' && Number.isFinite(value) && value >= low && value <= high;
const whole =
  (low: number, high: number): Check =>
  (value) =>
    Number.isSafeInteger(value) && num(low, high)(value);
const oneOf =
  (names: readonly string[]): Check =>
  (value) =>
    typeof value === 'string' && names.includes(value);
const flag: Check = (value) => typeof value === 'boolean';
const record: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

const day = 86_400;
const checks: Readonly<Record<keyof Steering, Check>> = {
  runSecs: num(0, day),
  readySecs: num(0, day),
  timingOutSecs: num(0, day),
  items: whole(0, 5_000_000),
  itemBytes: whole(1, 9_000_000),
  errorRows: whole(0, 5_000_000),
  status: oneOf(endStatuses),
  exitCode: whole(0, 255),
  statusMessage: (value) => typeof value === 'string' && value.length <= 20_000,
  lagSecs: num(0, day),
  lagMode: oneOf(lagModes),
  noItemCount: flag,
  otherDatasets: (value) =>
    record(value) &&
    Object.keys(value as object).length <= 20 &&
    Object.values(value as object).every(whole(0, 1e6)),
  records: (value) => record(value) && Object.keys(value as object).length <= 100,
  usageUsd: (value) => value === null || num(0, 1e6)(value),
  usageLagSecs: num(0, day),
  abortSecs: num(0, day),
  refuse: oneOf(refusalNames),
  refuseBare: flag,
  refuseTimes: whole(1, 1e6),
  fault: oneOf(faultKinds),
  faults: (value) => Array.isArray(value) && value.length <= 20 && value.every(isSteeredFault),
};

function isSteeredFault(value: unknown): boolean {
  if (!record(value)) return false;
  const fault = value as Record<string, unknown>;
  return (
    oneOf(simOperations)(fault.op) &&
    oneOf(faultKinds)(fault.kind) &&
    (fault.times === undefined || whole(1, 1e6)(fault.times)) &&
    (fault.ms === undefined || num(0, 600_000)(fault.ms))
  );
}

/**
 * Checks the value of the input key `sim`.
 * @throws SteeringError that names the key: a misspelt wish must not pass as an ordinary run.
 */
export function parseSteering(value: unknown): Steering {
  if (value === undefined) return {};
  if (!record(value)) throw new SteeringError('sim: must be an object');
  for (const [key, wish] of Object.entries(value as object)) {
    const check = Object.hasOwn(checks, key) ? checks[key as keyof Steering] : undefined;
    if (check === undefined) throw new SteeringError(`sim: unknown key '${key.slice(0, 60)}'`);
    if (!check(wish))
      throw new SteeringError(`sim.${key}: not allowed: ${JSON.stringify(wish)?.slice(0, 80)}`);
  }
  return value as Steering;
}
