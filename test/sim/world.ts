import type { ActorSpec, Input } from './actors/actor.js';
import { ArgumentChecks } from './arguments.js';
import { type Conditions, conditionsSchema, defaultConditions } from './conditions.js';
import { Faults } from './faults.js';
import { Ledger, type LedgerEntry, type LedgerMode } from './ledger.js';
import { type CallOptions, planRun } from './plan.js';
import { hash32, seeded } from './random.js';
import { RunRegistry } from './run-registry.js';
import { abortRun, finishRun, isFinal, type Run, statusOf } from './runs.js';
import type { EndStatus, SteeredFault, Steering } from './steering.js';

export interface WorldOptions {
  readonly seed: number;
  readonly speed: number;
  readonly firstRun: number;
  readonly ledger: LedgerMode;
  readonly ledgerLimit: number;
  readonly keepRuns: number;
  readonly conditions: Partial<Conditions>;
  /** Wishes every run starts from; a job's own `sim` key wins. */
  readonly steering: Steering;
}

/** Who made a call, for the ledger. */
export interface Caller {
  readonly session: string | null;
  readonly call: string | number | null;
}

const keepInputBytes = 256 * 1024 * 1024;

/** The simulated platform: its runs, its conditions, its clock, and the ledger of what happened. */
export class World {
  readonly options: WorldOptions;
  readonly faults: Faults;
  readonly ledger: Ledger;
  readonly checks = new ArgumentChecks();
  conditions: Conditions;
  runs: RunRegistry;
  #nextRun: number;
  #clockOffset = 0;
  #upSince: number;

  constructor(options: WorldOptions) {
    this.options = options;
    this.faults = new Faults(options.seed);
    this.ledger = new Ledger(options.ledger, options.ledgerLimit);
    this.conditions = conditionsSchema.parse({ ...defaultConditions, ...options.conditions });
    this.runs = new RunRegistry(options.keepRuns, keepInputBytes);
    this.#nextRun = options.firstRun;
    this.#upSince = this.now();
  }

  /** Milliseconds since the epoch on the simulator's clock. */
  now(): number {
    return Date.now() + this.#clockOffset;
  }

  /** Moves the clock forward; waiting calls look at it again at once. */
  advance(ms: number): void {
    const underWay = this.runs.underWay(this.now());
    this.#clockOffset += Math.max(0, ms);
    for (const run of underWay) for (const waiter of [...run.waiters]) waiter();
  }

  /** Changes conditions. @throws ZodError on an unknown key or a bad value; nothing is changed then. */
  set(patch: Partial<Conditions>): void {
    this.conditions = conditionsSchema.parse({ ...this.conditions, ...patch });
  }

  /** Forgets runs, ledger, faults and conditions, not the numbering: run ids never repeat in a process. */
  reset(): void {
    for (const run of this.runs.underWay(this.now())) abortRun(run, this.now(), 0);
    this.runs = new RunRegistry(this.options.keepRuns, keepInputBytes);
    this.ledger.clear();
    this.faults.reset();
    this.conditions = conditionsSchema.parse({ ...defaultConditions, ...this.options.conditions });
    this.#clockOffset = 0;
    this.#upSince = this.now();
  }

  /** Starts a run; limits and refusals were looked at before. */
  start(
    spec: {
      readonly actor: ActorSpec;
      readonly input: Input;
      readonly inputJson: string;
      readonly options: CallOptions;
      readonly steering: Steering;
      readonly faults: readonly SteeredFault[];
      readonly memoryMb: number;
      readonly via: 'call-actor' | 'direct';
      readonly double: boolean;
    },
    caller: Caller,
  ): Run {
    const now = this.now();
    const seq = this.#nextRun++;
    const plan = planRun({
      actor: spec.actor,
      input: spec.input,
      options: spec.options,
      steering: spec.steering,
      conditions: this.conditions,
      speed: this.options.speed,
      random: seeded(hash32(String(seq - this.options.firstRun), this.options.seed)),
      upMs: now - this.#upSince,
    });
    const run: Run = {
      seq,
      id: `run${String(seq).padStart(14, '0')}`,
      actor: spec.actor,
      input: spec.inputJson,
      options: spec.options,
      memoryMb: spec.memoryMb,
      startedAt: now,
      plan,
      faults: spec.faults,
      endAt: now + plan.totalMs,
      endStatus: plan.status,
      statusMessage: plan.statusMessage,
      items: plan.items,
      abortedAt: null,
      shape: null,
      waiters: new Set(),
    };
    this.runs.add(run, now);
    this.note('start', caller, {
      runId: run.id,
      actor: spec.actor.name,
      input: spec.inputJson,
      options: spec.options,
      via: spec.via,
      ...(spec.double ? { double: true } : {}),
    });
    return run;
  }

  /** Aborts as the platform does; `kind` tells the ledger why. */
  abort(run: Run, gracefully: boolean, caller: Caller, kind: 'abort' | 'cancelled'): void {
    const now = this.now();
    const before = statusOf(run, now);
    if (!isFinal(run, now)) {
      abortRun(run, now, run.plan.abortMs ?? (gracefully ? 3000 / this.options.speed : 0));
      this.runs.ended(run);
    }
    this.note(kind, caller, { runId: run.id, actor: run.actor.name, status: before });
  }

  /** Ends a run now, for tests that do not want to wait. False: it is not under way. */
  finish(runId: string, status: EndStatus = 'SUCCEEDED', items: number | null = null): boolean {
    const run = this.runs.get(runId);
    const now = this.now();
    if (run === undefined || !finishRun(run, now, status, items)) return false;
    this.runs.ended(run);
    this.note('finished', { session: null, call: null }, { runId, status });
    return true;
  }

  note(
    kind: LedgerEntry['kind'],
    caller: Caller,
    rest: Omit<LedgerEntry, 'n' | 'at' | 'kind' | 'session' | 'call'>,
  ) {
    this.ledger.write({ at: this.now(), kind, session: caller.session, call: caller.call, ...rest });
  }

  get upMs(): number {
    return this.now() - this.#upSince;
  }
}
