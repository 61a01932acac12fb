import type { ActorSpec, Input } from './actors/actor.js';
import type { Fault } from './faults.js';
import type { Run } from './runs.js';
import { nextChangeIn } from './runs.js';
import type { Session } from './sessions.js';
import type { SimOperation } from './steering.js';
import type { Caller, World } from './world.js';

/** One request on its way, tools/call above all. */
export class Call implements Caller {
  readonly world: World;
  readonly owner: Session;
  readonly call: string | number;
  readonly name: string;
  readonly progressToken: string | number | null;
  /** Sends a notification ahead of the answer (SSE answers with a progress token only). */
  readonly notify: ((json: string) => void) | null;
  op: SimOperation = 'other';
  fault: Fault | null = null;
  /** By the client: a start then aborts its run. */
  cancelled = false;
  /** Nobody waits for the answer any more: the connection is gone, or the simulator closes. */
  ended = false;
  readonly #wakers = new Set<() => void>();

  constructor(fields: {
    readonly world: World;
    readonly owner: Session;
    readonly id: string | number;
    readonly name: string;
    readonly progressToken: string | number | null;
    readonly notify: ((json: string) => void) | null;
  }) {
    this.world = fields.world;
    this.owner = fields.owner;
    this.call = fields.id;
    this.name = fields.name;
    this.progressToken = fields.progressToken;
    this.notify = fields.notify;
  }

  get session(): string {
    return this.owner.id;
  }

  cancel(): void {
    this.cancelled = true;
    this.#wakeAll();
  }

  end(): void {
    this.ended = true;
    this.#wakeAll();
  }

  /** Waits `ms`, or until the call is cancelled. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.cancelled || this.ended) return resolve();
      const done = () => {
        clearTimeout(timer);
        this.#wakers.delete(done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(ms, 2_000_000_000));
      this.#wakers.add(done);
    });
  }

  /**
   * Waits until the run is final, `ms` have passed, or the call is cancelled. One timer a waiting call; `onChange` is
   * called at each change of status on the way and at the end.
   */
  async waitForEnd(run: Run, ms: number, onChange: (() => void) | null): Promise<void> {
    const { world } = this;
    const until = world.now() + ms;
    while (!this.cancelled && !this.ended) {
      const now = world.now();
      const change = onChange === null ? Math.max(0, run.endAt - now) : nextChangeIn(run, now);
      if (change === null || now >= run.endAt || now >= until) return;
      const wake = () => this.#wakeAll();
      run.waiters.add(wake);
      // A millisecond more: timers may fire just before the clock says so.
      await this.sleep(Math.min(Math.ceil(change) + 1, Math.ceil(until - now)));
      run.waiters.delete(wake);
      onChange?.();
    }
  }

  #wakeAll(): void {
    for (const wake of [...this.#wakers]) wake();
  }
}

/** A start, read out of the arguments of `call-actor` or of an Actor's own tool. */
export interface StartArguments {
  readonly actor: ActorSpec;
  readonly input: Input;
  readonly via: 'call-actor' | 'direct';
}
