import type { Keys } from './names.js';
import type { ScriptedRedis } from './scripts.js';

/** A slot reserved before a job is taken lives this long; the job is taken within milliseconds. */
const reservedMs = 5_000;
/** A slot whose start is under way lives this long unless the worker renews it: a dead worker's comes back by itself. */
export const startingMs = 30_000;
/** Whether what is held works again is tried with one start: first after half a minute, then every 5 (design B5). */
export interface TrialSpans {
  readonly firstTrialMs: number;
  readonly trialEveryMs: number;
}

export const trialSpans: TrialSpans = { firstTrialMs: 30_000, trialEveryMs: 300_000 };

export interface Reservation {
  readonly members: readonly string[];
  /** Why there are none: `full`, or the reason of a hold, cool-down or pause; '' when there are some. */
  readonly reason: string;
  /** Not worth asking again before this many ms, unless a slot is released. */
  readonly waitMs: number;
  /** Let through a hold to see whether the server works again: give it back when nothing is started. '' for none. */
  readonly probe: string;
}

/**
 * The run slots of one server, fleet-wide (design B1, Slots). A slot is reserved (5 s), bound to a scrape while its start
 * is under way (30 s, renewed), and belongs to the run, without expiry, until its final status is seen.
 */
export class Slots {
  private sequence = 0;
  private readonly starting = new Set<string>();
  private renewal: NodeJS.Timeout | null = null;

  constructor(
    private readonly redis: ScriptedRedis,
    private readonly keys: Keys,
    private readonly server: string,
    private readonly limits: { readonly runs: number; readonly memoryMb: number | null },
    /** Unique to the process. */
    private readonly owner: string,
    private readonly onError: (error: unknown) => void,
    private readonly spans: { readonly trialEveryMs: number; readonly startingMs: number },
  ) {}

  async reserve(want: number): Promise<Reservation> {
    const prefix = `~${this.owner}:${this.sequence++}:`;
    const [granted, reason, waitMs, probe] = (await this.redis.trawlReserve(
      this.keys.slots(this.server),
      this.keys.server(this.server),
      this.limits.runs,
      want,
      reservedMs,
      prefix,
      this.spans.trialEveryMs,
    )) as [number, string, number, string];
    const members = Array.from({ length: granted }, (_, index) => `${prefix}${index + 1}`);
    return { members, reason, waitMs, probe };
  }

  /** Nothing was started with this probe: the next job may be it. */
  async spareProbe(probe: string): Promise<void> {
    if (probe !== '') await this.redis.trawlSpareProbe(this.keys.server(this.server), probe);
  }

  /** Turns a reservation into the scrape's slot and keeps it alive until `toRun`, `giveBack`, `leave` or `release`. */
  async bind(member: string, scrape: string, memoryMb: number): Promise<'bound' | 'none' | 'memory'> {
    const result = await this.redis.trawlBind(
      this.keys.slots(this.server),
      this.keys.slotMemory(this.server),
      member,
      scrape,
      this.spans.startingMs,
      this.limits.runs,
      memoryMb,
      this.limits.memoryMb ?? 0,
    );
    if (result !== 1) return result === 0 ? 'none' : 'memory';
    this.starting.add(scrape);
    this.renewal ??= setInterval(() => this.renew(), this.spans.startingMs / 3).unref();
    return 'bound';
  }

  /** The run is known: from here the slot stays until its final status is seen. */
  async toRun(scrape: string): Promise<void> {
    await this.redis.zadd(this.keys.slots(this.server), '+inf', scrape);
    this.starting.delete(scrape);
  }

  /**
   * `toRun` after a start that was taken: the server's next cool-down is a short one again, and a streak of refusals of
   * this tool is over.
   * @returns whether the scrape was cancelled meanwhile, alone or with its batch
   */
  async handOn(scrape: string, tool: string): Promise<boolean> {
    const reply = await this.redis.trawlHandOn(
      this.keys.slots(this.server),
      this.keys.attempt(scrape),
      this.keys.batch(scrape.slice(0, scrape.indexOf('.'))),
      this.keys.server(this.server),
      this.keys.refusalStreak(this.server, tool),
      scrape,
    );
    this.starting.delete(scrape);
    return reply === 1;
  }

  /** Of a run that is over. */
  async release(...members: string[]): Promise<void> {
    await this.remove(members, false);
  }

  /** After a start that made no run. A slot that belongs to a run by now is another worker's doing, and stays. */
  async giveBack(...members: string[]): Promise<void> {
    await this.remove(members, true);
  }

  /** The slot is no longer this process's to keep alive: a run has it, or it lives for what is left of its time. */
  leave(scrape: string): void {
    this.starting.delete(scrape);
  }

  private async remove(members: readonly string[], spareRuns: boolean): Promise<void> {
    if (members.length === 0) return;
    for (const member of members) this.starting.delete(member);
    await this.redis.trawlRelease(
      this.keys.slots(this.server),
      this.keys.slotMemory(this.server),
      this.keys.wakeChannel,
      this.server,
      spareRuns ? 1 : 0,
      ...members,
    );
  }

  /** Scrapes that hold a slot for a run, for the reaper. */
  async holders(): Promise<string[]> {
    return this.redis.zrangebyscore(this.keys.slots(this.server), '+inf', '+inf');
  }

  async inFlight(): Promise<number> {
    return this.redis.zcount(this.keys.slots(this.server), '+inf', '+inf');
  }

  close(): void {
    if (this.renewal !== null) clearInterval(this.renewal);
    this.renewal = null;
  }

  private renew(): void {
    if (this.starting.size === 0) return;
    this.redis
      .trawlRenew(this.keys.slots(this.server), this.spans.startingMs, ...this.starting)
      .catch(this.onError);
  }
}
