import type { CallFailure, CallResult, PageView, RunView } from '../../src/mcp/port.js';
import type { Slice } from '../../src/run/attempt.js';
import type { Search } from '../../src/run/reconcile.js';
import { failure, ok, page, run } from './attempts.js';

/** Choices of a history, as fast-check made them. Used up, everything goes well: so each history ends. */
export class Dice {
  private at = 0;

  constructor(private readonly rolls: readonly number[]) {}

  /** 0 … sides - 1; 0 is the harmless side. */
  roll(sides: number): number {
    const roll = this.rolls[this.at];
    this.at += 1;
    return roll === undefined ? 0 : roll % sides;
  }

  /** True once in `sides` times. */
  strikes(sides: number): boolean {
    return this.roll(sides) === 1;
  }
}

interface ServerRun {
  readonly runId: string;
  readonly createdAt: number;
  endAt: number;
  status: 'SUCCEEDED' | 'FAILED' | 'ABORTED';
}

const faults: readonly Partial<CallFailure>[] = [
  { kind: 'network_error' },
  { kind: 'timeout' },
  { kind: 'http_error', httpStatus: 502 },
  { kind: 'invalid_response' },
  { kind: 'session_lost', noEffect: true },
  { kind: 'http_error', httpStatus: 401, refusal: 'server', holdReason: 'auth', noEffect: true },
  { kind: 'rate_limited', refusal: 'not_now', holdReason: 'rate_limit', retryAfterMs: 5_000, noEffect: true },
];

/** A server that lags, fails, forgets and does the work without saying so, as the dice have it. */
export class RandomServer {
  readonly runs: ServerRun[] = [];
  readonly items: readonly string[];
  /** Its clock, ms ahead of ours. */
  private readonly skew: number;
  /** Its items stay behind its own total, however long one waits. */
  private readonly staysShort: boolean;
  /** It often says that it does not know the run. */
  private readonly forgetful: boolean;
  /** Its list of runs never reaches back to a start. */
  private readonly blind: boolean;

  constructor(private readonly dice: Dice) {
    const sizes = [1, 1, 40, 400];
    const size = sizes[dice.roll(sizes.length)] as number;
    this.items = Array.from({ length: [7, 0, 1, 30, 90][dice.roll(5)] as number }, (_, index) =>
      JSON.stringify({ index, text: 'x'.repeat(size) }),
    );
    this.skew = [0, -3_600_000, 86_400_000][dice.roll(3)] as number;
    this.staysShort = dice.strikes(12);
    this.blind = dice.strikes(8);
    this.forgetful = dice.strikes(20);
  }

  get run(): ServerRun | undefined {
    return this.runs[0];
  }

  isFinal(now: number): boolean {
    return this.run !== undefined && this.run.endAt <= now;
  }

  start(now: number): CallResult<RunView> {
    const way = this.dice.roll(16);
    if (way === 0 || way > 10) {
      this.create(now);
      return ok(this.view(now));
    }
    if (way === 1 || way === 9 || way === 10) {
      // The server tries the start again by itself for minutes: its run may come long after the answer was lost.
      this.create(now + this.dice.roll(5) * 60_000);
      return failure({ kind: 'timeout' });
    }
    if (way === 2) return failure({ kind: 'network_error' });
    if (way === 3) return failure({ kind: 'network_error', noEffect: true });
    if (way === 4) return failure({ refusal: 'not_now', holdReason: 'capacity', noEffect: true });
    if (way === 5) return failure({ refusal: 'server', holdReason: 'payment', noEffect: true });
    if (way === 6) return failure({ refusal: 'tool', holdReason: 'tools_missing', noEffect: true });
    if (way === 7) return failure({ refusal: 'scrape', message: 'bad input', noEffect: true });
    return failure({ refusal: 'unknown', message: 'no', noEffect: true });
  }

  private create(at: number): void {
    const lasts = [20_000, 0, 90_000, 10_000_000][this.dice.roll(4)] as number;
    const status = (['SUCCEEDED', 'FAILED', 'ABORTED'] as const)[this.dice.roll(3)] as ServerRun['status'];
    this.runs.push({ runId: `run${this.runs.length + 1}`, createdAt: at, endAt: at + lasts, status });
  }

  private fault(): CallResult<never> | null {
    const side = this.dice.roll(faults.length * 2);
    return side >= 1 && side <= faults.length ? failure(faults[side - 1]) : null;
  }

  search(now: number): Search | null {
    const way = this.dice.roll(6);
    switch (this.blind && way !== 1 ? 2 : way) {
      case 1:
        return null;
      case 2:
        return { found: null, covered: false, readAt: now };
      default: {
        const found = this.runs.find(({ createdAt }) => createdAt <= now);
        return found === undefined ? { found: null, covered: true, readAt: now } : { found: found.runId };
      }
    }
  }

  look(now: number): CallResult<RunView> {
    const unknown = this.forgetful ? this.dice.roll(4) > 0 : this.dice.strikes(10);
    if (unknown) return failure({ kind: 'tool_error', notFound: true });
    return this.fault() ?? ok(this.view(now));
  }

  abort(now: number): CallResult<RunView> {
    const { run: ours } = this;
    if (ours === undefined) return failure({ kind: 'tool_error', notFound: true });
    const fault = this.fault();
    // Heard or not when the answer is lost.
    if (fault === null || this.dice.strikes(2)) {
      if (ours.endAt > now) {
        ours.endAt = now + this.dice.roll(3) * 4_000;
        ours.status = 'ABORTED';
      }
    }
    return fault ?? ok(this.view(now));
  }

  private view(now: number): RunView {
    const ours = this.run as ServerRun;
    const final = ours.endAt <= now;
    const counted = [this.items.length, 0, null][this.dice.roll(3)] as number | null;
    return run({
      runId: ours.runId,
      status: final ? ours.status : 'RUNNING',
      final,
      startedAtMs: ours.createdAt + this.skew,
      finishedAtMs: final && !this.dice.strikes(4) ? ours.endAt + this.skew : null,
      itemCount: final ? counted : null,
      usageUsd: this.dice.strikes(3) ? null : 0.25,
    });
  }

  read(slice: Slice, now: number): CallResult<PageView> {
    const fault = this.fault();
    if (fault !== null) return fault;
    if (this.dice.strikes(6)) return failure({ kind: 'invalid_response', tooLarge: true });
    const ours = this.run as ServerRun;
    const { length } = this.items;
    // Counts and items lag for up to 5 s after the end (apify-contract), one by one.
    const settled = now >= ours.endAt + 5_000;
    const there = settled && !this.staysShort ? length : length - this.dice.roll(length + 1);
    const total = settled ? length : length - this.dice.roll(length + 1);
    const shown = this.dice.strikes(5) ? Math.max(1, slice.limit - 3) : slice.limit;
    const end = Math.min(there, slice.offset + shown);
    return page(this.items.slice(slice.offset, end), this.dice.strikes(8) ? null : total);
  }
}
