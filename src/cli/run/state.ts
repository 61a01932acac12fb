import type { ServerState } from '../../queue/holds.js';
import type { Tally } from './tally.js';

/** What the display shows of one server. */
export interface ServerView {
  readonly name: string;
  /** Of all processes together: slots are the fleet's. */
  readonly runsInFlight: number;
  readonly runSlots: number;
  readonly state: ServerState;
}

/** Everything a progress display needs at one moment. */
export interface RunView {
  readonly batch: string;
  readonly tally: Tally;
  readonly submitted: number;
  readonly servers: readonly ServerView[];
  readonly rate: Rate;
  readonly phase: 'submitting' | 'working' | 'finishing';
  /** Milliseconds since Redis was last heard of; null while it answers. */
  readonly redisAwayMs: number | null;
}

/** How long the rate looks back: longer than a run's ups and downs, short enough to notice a change. */
const windowMs = 120_000;

/** Scrapes settled a second over the last two minutes. */
export class Rate {
  private readonly samples: { at: number; settled: number }[] = [];

  sample(at: number, settled: number): void {
    this.samples.push({ at, settled });
    while (this.samples.length > 2 && (this.samples[1]?.at ?? at) <= at - windowMs) this.samples.shift();
  }

  /** null before it can be told. */
  get perSecond(): number | null {
    const first = this.samples[0];
    const last = this.samples.at(-1);
    if (first === undefined || last === undefined || last.at - first.at < 1_000) return null;
    const settled = last.settled - first.settled;
    return settled > 0 ? settled / ((last.at - first.at) / 1000) : null;
  }

  leftMs(remaining: number): number | null {
    const { perSecond } = this;
    return perSecond === null ? null : (remaining / perSecond) * 1000;
  }
}
