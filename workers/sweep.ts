import type { Logger } from '../src/logger.js';
import type { WorkerContext } from './context.js';
import { updateFleetGauges } from './gauges.js';
import { Leader } from './leader.js';
import { settleFailed, settleRemoved } from './lost-jobs.js';
import { probeServer } from './probes.js';
import { reapRuns, reapSlots, reapWaiting } from './reaper.js';
import { removeOld } from './retention.js';
import type { Timing } from './timing.js';

interface Chore {
  readonly name: string;
  readonly everyMs: (timing: Timing) => number;
  readonly run: (ctx: WorkerContext) => Promise<void>;
}

/** It calls servers, and one that hangs takes its time: no other chore may wait for that, nor the same one of another server. */
interface ServerChore {
  readonly name: string;
  readonly everyMs: (timing: Timing) => number;
  readonly run: (ctx: WorkerContext, server: string) => Promise<void>;
}

/** A run has to be seen twice, `orphanAfterMs` apart, and a second run is to be ended within a minute. */
const runsEveryMs = (timing: Timing) => Math.min(timing.reapEveryMs, timing.orphanAfterMs);

/** What the elected process does, and how often. Each chore may fail on its own and is tried again. */
const chores: readonly Chore[] = [
  { name: 'gauges', everyMs: (timing) => timing.sweepEveryMs, run: updateFleetGauges },
  { name: 'parked', everyMs: (timing) => timing.sweepEveryMs, run: unparkReleased },
  { name: 'slots', everyMs: (timing) => timing.reapEveryMs, run: reapSlots },
  { name: 'waiting', everyMs: (timing) => timing.reapEveryMs, run: reapWaiting },
  { name: 'removed', everyMs: (timing) => timing.reapEveryMs, run: settleRemoved },
  { name: 'failed', everyMs: (timing) => timing.reapEveryMs, run: settleFailed },
  { name: 'retention', everyMs: (timing) => timing.reapEveryMs, run: removeOld },
];

const serverChores: readonly ServerChore[] = [
  { name: 'probes', everyMs: (timing) => timing.probeEveryMs, run: probeServer },
  { name: 'runs', everyMs: runsEveryMs, run: reapRuns },
];

/** Runs the chores while this process is the elected one. */
export class Sweep {
  private readonly leader: Leader;
  private readonly last = new Map<string, number>();
  private timer: NodeJS.Timeout | null = null;
  private turn: Promise<void> | null = null;
  /** Chores of servers under way beside the turns, by chore and server. */
  private readonly aside = new Map<string, Promise<void>>();
  private stopped = false;
  /** This process has the fleet's gauges. */
  private reporting = false;
  private wonAt = 0;

  constructor(
    private readonly ctx: WorkerContext,
    private readonly log: Logger,
  ) {
    this.leader = new Leader(ctx.redis, ctx.keys.leader, ctx.owner, ctx.timing.leaseMs);
  }

  start(): void {
    this.timer = setInterval(() => this.tick(), this.ctx.timing.sweepEveryMs);
    this.tick();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    if (this.timer !== null) clearInterval(this.timer);
    await this.turn;
    await Promise.all(this.aside.values());
    this.ctx.metrics.forgetFleet();
    await this.leader.resign().catch(() => {});
  }

  /** A turn may take long (Redis away); none is begun before it ends. */
  private tick(): void {
    // Nobody told us, since Redis does not answer: another has the lease by now, and reports what is so.
    if (this.reporting && this.ctx.now() - this.wonAt > this.ctx.timing.leaseMs) this.forget();
    this.turn ??= this.sweep()
      .catch((error) => {
        this.log.warn({ event: 'sweep.failed', err: error }, 'the sweep could not run; it is tried again');
      })
      .finally(() => {
        this.turn = null;
      });
  }

  private async sweep(): Promise<void> {
    if (this.stopped) return;
    if (!(await this.campaign())) {
      // Each time: a turn that Redis held up for longer than the lease has filled the gauges once more.
      this.forget();
      return;
    }
    this.reporting = true;
    // A turn over many queues outlasts the lease, and two leaders would report the fleet twice.
    const renewal = setInterval(() => void this.campaign().catch(() => {}), this.ctx.timing.leaseMs / 3);
    try {
      await this.doChores();
    } finally {
      clearInterval(renewal);
    }
  }

  private async campaign(): Promise<boolean> {
    const at = this.ctx.now();
    const won = await this.leader.campaign();
    if (won) this.wonAt = at;
    return won;
  }

  private forget(): void {
    this.reporting = false;
    this.ctx.metrics.forgetFleet();
  }

  private async doChores(): Promise<void> {
    const { ctx } = this;
    for (const chore of serverChores) {
      for (const server of Object.keys(ctx.config.servers)) {
        const key = `${chore.name} ${server}`;
        if (this.aside.has(key) || !this.isDue(key, chore)) continue;
        const done = this.attempt(chore.name, () => chore.run(ctx, server));
        this.aside.set(
          key,
          done.finally(() => this.aside.delete(key)),
        );
      }
    }
    for (const chore of chores) {
      if (this.isDue(chore.name, chore)) await this.attempt(chore.name, () => chore.run(ctx));
    }
  }

  /** Whether it is to be done in this turn, which is noted then. */
  private isDue(key: string, { everyMs }: Pick<Chore, 'everyMs'>): boolean {
    const due = (this.last.get(key) ?? 0) + everyMs(this.ctx.timing);
    if (this.stopped || this.ctx.now() < due) return false;
    this.last.set(key, this.ctx.now());
    return true;
  }

  private async attempt(chore: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.log.warn({ event: 'chore.failed', chore, err: error }, 'a chore failed; it is tried again');
    }
  }
}

async function unparkReleased(ctx: WorkerContext): Promise<void> {
  for (const server of Object.keys(ctx.config.servers)) {
    await ctx.holds.unparkReleased(server);
    await ctx.holds.unparkProbes(server);
  }
}
