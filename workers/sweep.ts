import type { Logger } from '../src/logger.js';
import type { WorkerContext } from './context.js';
import { updateFleetGauges } from './gauges.js';
import { Leader, leaseMs, renewEveryMs } from './leader.js';
import { settleFailed, settleRemoved } from './lost-jobs.js';
import { probeServers } from './probes.js';
import { reapRuns, reapSlots, reapWaiting } from './reaper.js';
import { removeOld } from './retention.js';
import type { Timing } from './timing.js';

interface Chore {
  readonly name: string;
  readonly everyMs: (timing: Timing) => number;
  readonly run: (ctx: WorkerContext) => Promise<void>;
}

/** What the elected process does, and how often. Each chore may fail on its own and is tried again. */
const chores: readonly Chore[] = [
  { name: 'gauges', everyMs: (timing) => timing.sweepEveryMs, run: updateFleetGauges },
  { name: 'parked', everyMs: (timing) => timing.sweepEveryMs, run: unparkReleased },
  { name: 'probes', everyMs: (timing) => timing.probeEveryMs, run: probeServers },
  { name: 'slots', everyMs: (timing) => timing.reapEveryMs, run: reapSlots },
  { name: 'waiting', everyMs: (timing) => timing.reapEveryMs, run: reapWaiting },
  { name: 'removed', everyMs: (timing) => timing.reapEveryMs, run: settleRemoved },
  { name: 'failed', everyMs: (timing) => timing.reapEveryMs, run: settleFailed },
  { name: 'retention', everyMs: (timing) => timing.reapEveryMs, run: removeOld },
  { name: 'runs', everyMs: (timing) => timing.reapEveryMs, run: reapRuns },
];

/** Runs the chores while this process is the elected one. */
export class Sweep {
  private readonly leader: Leader;
  private readonly last = new Map<string, number>();
  private timer: NodeJS.Timeout | null = null;
  private turn: Promise<void> | null = null;
  private stopped = false;
  /** This process has the fleet's gauges. */
  private reporting = false;
  private ledAt = 0;

  constructor(
    private readonly ctx: WorkerContext,
    private readonly log: Logger,
  ) {
    this.leader = new Leader(ctx.redis, ctx.keys.leader, ctx.owner);
  }

  start(): void {
    this.timer = setInterval(() => this.tick(), this.ctx.timing.sweepEveryMs);
    this.tick();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    if (this.timer !== null) clearInterval(this.timer);
    await this.turn;
    this.ctx.metrics.forgetFleet();
    await this.leader.resign().catch(() => {});
  }

  /** A turn may take long (a server that does not answer, Redis away); none is begun before it ends. */
  private tick(): void {
    // Cut off from Redis, it would go on saying what another process says better by now.
    if (this.reporting && this.ctx.now() - this.ledAt > leaseMs) {
      this.reporting = false;
      this.ctx.metrics.forgetFleet();
    }
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
    this.reporting = await this.campaign();
    if (!this.reporting) {
      this.ctx.metrics.forgetFleet();
      return;
    }
    // A chore that waits for a server outlasts the lease, and two leaders would report the fleet twice.
    const renewal = setInterval(() => void this.campaign().catch(() => {}), renewEveryMs);
    try {
      await this.doChores();
    } finally {
      clearInterval(renewal);
    }
  }

  private async campaign(): Promise<boolean> {
    const won = await this.leader.campaign();
    if (won) this.ledAt = this.ctx.now();
    return won;
  }

  private async doChores(): Promise<void> {
    for (const chore of chores) {
      const due = (this.last.get(chore.name) ?? 0) + chore.everyMs(this.ctx.timing);
      if (this.stopped || this.ctx.now() < due) continue;
      this.last.set(chore.name, this.ctx.now());
      try {
        await chore.run(this.ctx);
      } catch (error) {
        this.log.warn(
          { event: 'chore.failed', chore: chore.name, err: error },
          'a chore failed; it is tried again',
        );
      }
    }
  }
}

async function unparkReleased(ctx: WorkerContext): Promise<void> {
  for (const server of Object.keys(ctx.config.servers)) {
    await ctx.holds.unparkReleased(server);
    await ctx.holds.unparkProbes(server);
  }
}
