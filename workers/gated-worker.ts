import type { Job, Processor, WorkerOptions } from 'bullmq';
import type { Slots } from '../src/queue/slots.js';
import type { WorkerContext } from './context.js';
import { FetchingWorker } from './fetching-worker.js';
import type { Wakeups } from './wakeups.js';

/** At most this many slots are reserved at once: they live for 5 s, and the jobs have to be taken within that. */
const reserveAtOnce = 16;

/** A reserved slot. */
export interface Ticket {
  readonly member: string;
  /** The probe it was let through a hold with, to see if the server works again; '' without one. */
  readonly probe: string;
  /** Whether the server was asked for something: a probe with which it was not is given back. */
  tried: boolean;
}

/** The parts of BullMQ's Worker that its own main loop uses and its types keep to itself. */
interface WorkerInternals {
  mainLoop: () => Promise<void>;
  waitForJob(blockUntil: number): Promise<number>;
  blockUntil: number;
  drained: boolean;
}

/**
 * The gate (design B1): take a run slot first, a start job second. BullMQ's main loop is replaced by this one; the
 * stalled check, the lock manager and closing stay BullMQ's, because `run()` and `close()` do.
 *
 * ```
 *   wait for a job ──► reserve slots ──► take a job for each ──► process (its slot goes with it)
 *        ▲                  │ none: wait for a release, at most as long as the gate says
 *        └──────────────────┘
 * ```
 * A reserved slot that gets no job is given back at once, and so is a probe with which the server was not asked. A job's slot is found by the processor in `ticketOf`.
 */
export class GatedWorker extends FetchingWorker {
  private readonly tickets = new Map<string, Ticket>();
  private readonly unasked = new Set<string>();
  private resting = false;
  private readonly inHand = new Set<Promise<unknown>>();
  private tokens = 0;

  constructor(
    name: string,
    processor: Processor,
    options: WorkerOptions,
    ctx: WorkerContext,
    private readonly slots: Slots,
    private readonly wakeups: Wakeups,
    private readonly server: string,
  ) {
    super(name, processor, options, ctx);
    this.ctx = ctx;
    this.internals.mainLoop = () => this.gatedLoop();
  }

  private readonly ctx: WorkerContext;

  private get internals(): WorkerInternals {
    return this as unknown as WorkerInternals;
  }

  /** What a job was taken with; whoever asks sees to its slot. */
  ticketOf(token: string): Ticket {
    this.unasked.delete(token);
    return this.tickets.get(token) ?? { member: '', probe: '', tried: false };
  }

  /** Whether jobs are being worked on. */
  get busy(): boolean {
    return this.inHand.size > 0;
  }

  /** The job at the head does not fit now (memory): nothing is taken until a slot is released, or for a second. */
  restUntilRelease(): void {
    this.resting = true;
  }

  private async gatedLoop(): Promise<void> {
    let expectWork = true;
    while (!this.closing) {
      if (this.inHand.size >= this.concurrency) {
        await Promise.race(this.inHand);
        continue;
      }
      if (!expectWork) {
        await this.internals.waitForJob(this.internals.blockUntil);
        expectWork = true;
        continue;
      }
      try {
        if (this.resting) {
          this.resting = false;
          await this.wakeups.wait(this.server, 1_000);
        }
        expectWork = await this.takeSome();
      } catch (error) {
        if (this.closing) break;
        this.emit('error', error as Error);
        await this.wakeups.wait(this.server, 1_000);
      }
    }
    await Promise.allSettled(this.inHand);
  }

  /** False when the queue had nothing for us. */
  private async takeSome(): Promise<boolean> {
    const want = Math.min(reserveAtOnce, this.concurrency - this.inHand.size);
    const woken = this.wakeups.count(this.server);
    const { members, waitMs, probe } = await this.slots.reserve(want);
    this.ctx.liveness.beat(this.name);
    if (members.length === 0) {
      await this.wakeups.wait(this.server, Math.min(1_000, waitMs), woken);
      return true;
    }
    for (const [index, member] of members.entries()) {
      const token = `${this.id}:${this.tokens++}`;
      const job = this.closing ? undefined : await this.getNextJob(token, { block: false });
      if (job === undefined) {
        await this.slots.release(...members.slice(index));
        await this.slots.spareProbe(probe);
        return false;
      }
      this.tickets.set(token, { member, probe, tried: false });
      this.unasked.add(token);
      this.hold(this.work(job, token));
    }
    return true;
  }

  private async work(job: Job, token: string): Promise<void> {
    try {
      await this.processJob(job, token, () => false);
    } finally {
      const ticket = this.tickets.get(token);
      this.tickets.delete(token);
      // There was nothing to start: the scrape had ended, or is to wait.
      if (this.unasked.delete(token) && ticket !== undefined) await this.slots.release(ticket.member);
      if (ticket !== undefined && !ticket.tried) await this.slots.spareProbe(ticket.probe);
    }
  }

  private hold(work: Promise<void>): void {
    const held = work
      .catch((error) => this.emit('error', error as Error))
      .finally(() => this.inHand.delete(held));
    this.inHand.add(held);
  }
}
