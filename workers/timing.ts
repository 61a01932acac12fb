import { startingMs, trialSpans } from '../src/queue/slots.js';

/** Time spans of the workers that are not configuration: fixed by the design, shorter only in tests. Milliseconds. */
export interface Timing {
  /** A job whose worker has not renewed its lock for this long is taken up by another (design B1). */
  readonly lockMs: number;
  readonly stalledEveryMs: number;
  /** Only a list of runs read this long after the intent proves that a start had no effect (design B4). */
  readonly certainAfterMs: number;
  /**
   * A start is sent within this time of its intent or not at all: the rest of `certainAfterMs` is for the server, which may
   * repeat it by itself for 220 s (apify-contract, Errors).
   */
  readonly sendWithinMs: number;
  /** A start still ambiguous after this long ends `start_unknown`. */
  readonly unknownAfterMs: number;
  /**
   * The run of an attempt that has ended stays claimed for this long: until then another scrape with an equal input may
   * still look for the run of its own lost answer.
   */
  readonly claimAfterMs: number;
  /** An unrecognised refusal waits this long for company before it rejects its scrape (design B5). */
  readonly refusalPatienceMs: number;
  /** A run without an owner is left alone until it has been seen for this long: its answer may be on its way. */
  readonly orphanAfterMs: number;
  readonly sweepEveryMs: number;
  readonly probeEveryMs: number;
  readonly reapEveryMs: number;
  /** A held server lets one start through after the first span, and then, as a held tool does, after each of the second. */
  readonly firstTrialMs: number;
  readonly trialEveryMs: number;
  /** How often a process looks for log levels an operator asked for. */
  readonly logLevelsEveryMs: number;
  /** The elected process has to renew its lease within this. */
  readonly leaseMs: number;
  readonly connectTimeoutMs: number;
  /** How long a server's list of tools, with their schemas, is good for. */
  readonly toolsFreshMs: number;
  /** How long an answer is waited for, of calls that neither start a run nor read items. */
  readonly callTimeoutMs: number;
  /** A slot whose start is under way comes back after this long unless its worker renews it. */
  readonly startingMs: number;
}

export const defaultTiming: Timing = {
  lockMs: 15_000,
  stalledEveryMs: 5_000,
  certainAfterMs: 300_000,
  sendWithinMs: 75_000,
  unknownAfterMs: 900_000,
  // A search waits for a day for a server that is away, and an hour for what follows.
  claimAfterMs: 25 * 3_600_000,
  refusalPatienceMs: 30_000,
  orphanAfterMs: 10_000,
  sweepEveryMs: 5_000,
  probeEveryMs: 15_000,
  reapEveryMs: 15_000,
  firstTrialMs: trialSpans.firstTrialMs,
  trialEveryMs: trialSpans.trialEveryMs,
  logLevelsEveryMs: 2_000,
  startingMs,
  leaseMs: 10_000,
  connectTimeoutMs: 30_000,
  toolsFreshMs: 600_000,
  callTimeoutMs: 60_000,
};
