import type { CallResult, RunView } from '../../src/mcp/port.js';
import { type Attempt, type Decision, phaseRank, type RunSpec, type Slice } from '../../src/run/attempt.js';
import { decideFinished } from '../../src/run/outcome.js';
import { afterRead, afterWrite, beforeRead } from '../../src/run/pages.js';
import { type AfterLook, afterAbort, afterPoll, beforePoll } from '../../src/run/poll.js';
import { afterSearch } from '../../src/run/reconcile.js';
import { afterStart, beforeStart } from '../../src/run/start.js';
import { attempt, t0 } from './attempts.js';
import { Dice, RandomServer } from './random-server.js';

const pageBytes = 600;
const intervalMs = 30_000;
const patience = { certainAfterMs: 300_000, unknownAfterMs: 900_000 };

/**
 * One attempt from submission to its decision: the core decides, this class carries it out as the workers do, and the
 * dice crash it between any two steps, freeze it and let it write late, cancel it, and make the server fail. What was
 * saved is all that the next step knows.
 */
export class History {
  readonly dice: Dice;
  readonly server: RandomServer;
  /** The first page of an index stays, whoever writes it (design A5). */
  readonly pages = new Map<number, readonly string[]>();
  readonly slices: Slice[] = [];
  readonly decisions: Decision[] = [];
  /** Breaches, in words; empty when all promises were kept. */
  readonly breaches: string[] = [];
  now = t0;
  saved: Attempt;
  steps = 0;
  private readonly late: (() => void)[] = [];
  private searchedBare = false;

  constructor(
    rolls: readonly number[],
    readonly spec: RunSpec,
    private readonly expiresInMs: number | null,
  ) {
    this.dice = new Dice(rolls);
    this.server = new RandomServer(this.dice);
    this.saved = attempt({ spec });
  }

  /** Steps until the attempt is decided; then every stage is tried once more. */
  play(): this {
    while (this.saved.phase !== 'decided' && this.steps < 2_000) this.step();
    if (this.saved.phase !== 'decided') this.breaches.push('it never ended');
    this.now += 3_600_000;
    const start = beforeStart(this.saved, this.now, this.expiresInMs);
    if (start.do !== 'nothing') this.breaches.push(`decided, and would ${start.do}`);
    if (beforePoll(this.saved) !== 'nothing') this.breaches.push('decided, and would go on');
    return this;
  }

  private step(): void {
    this.steps += 1;
    if (this.dice.strikes(60) && this.saved.cancelledAt === null) this.save({ cancelledAt: this.now });
    if (this.dice.strikes(10)) this.late.shift()?.();
    const until = this.work();
    if (until !== null && !(until >= this.now && until <= this.now + 25 * 3_600_000)) {
      this.breaches.push(`comes back at ${until - this.now} ms`);
    }
    const next = Math.max(this.now + 50, until ?? this.now);
    this.now = next + (this.dice.roll(4) === 1 ? 20_000 : 0);
  }

  /** When to come back; null: at once. */
  private work(): number | null {
    const { phase, intentAt } = this.saved;
    if (phase === 'queued' || (phase === 'starting' && intentAt === null)) return this.start();
    if (phase === 'starting') return this.search();
    if (phase === 'running') return this.poll();
    if (phase === 'aborting') return this.abort();
    return this.read();
  }

  private crashes(): boolean {
    return this.dice.strikes(12);
  }

  private save(patch: Partial<Attempt>): void {
    if (patch.phase !== undefined && phaseRank(patch.phase) < phaseRank(this.saved.phase)) {
      this.breaches.push(`went back from ${this.saved.phase} to ${patch.phase}`);
    }
    if (patch.slice !== undefined && patch.slice !== null) this.slices.push(patch.slice);
    this.saved = { ...this.saved, ...patch };
  }

  private settle(decision: Decision): null {
    this.decisions.push(decision);
    this.save({ phase: 'decided', decision, intentAt: null });
    return null;
  }

  private start(): number | null {
    const before = beforeStart(this.saved, this.now, this.expiresInMs);
    if (before.do === 'settle') return this.settle(before.decision);
    if (before.do !== 'start') {
      this.breaches.push(`a waiting attempt would ${before.do}`);
      return null;
    }
    this.save({
      phase: 'starting',
      intentAt: this.now,
      startedAt: this.now,
      deadlineAt: this.now + this.spec.deadlineMs,
    });
    if (this.crashes()) return null;
    if (this.saved.cancelledAt !== null) this.breaches.push('started though cancelled');
    const result = this.server.start(this.now);
    this.now += 1_500;
    if (this.crashes()) return null;
    const after = afterStart(result, this.now);
    switch (after.do) {
      case 'run':
        this.hasRun(after.run.runId, {
          serverStartedAt: after.run.startedAtMs,
          datasetId: after.run.datasetId,
        });
        return null;
      case 'settle':
        return this.settle(after.decision);
      case 'put_back':
        this.save({ intentAt: null, startedAt: null, deadlineAt: null });
        return this.now + 5_000;
      case 'reconcile':
        this.save({ ambiguousSince: this.now });
        return null;
    }
  }

  private hasRun(runId: string, more: Partial<Attempt>): void {
    this.save({
      phase: 'running',
      runId,
      intentAt: null,
      ambiguousSince: null,
      repliedAt: this.now,
      ...more,
    });
  }

  private search(): number | null {
    const again = beforeStart(this.saved, this.now, this.expiresInMs);
    if (again.do !== 'reconcile') this.breaches.push(`an intent without an answer, and it would ${again.do}`);
    const search = this.server.search(this.now);
    const sinceIntent = this.now - (this.saved.intentAt as number);
    this.searchedBare = search !== null && search.found === null && search.covered && sinceIntent >= 300_000;
    const after = afterSearch(this.saved, search, true, this.now, patience);
    if (this.crashes()) return null;
    switch (after.do) {
      case 'adopt':
        this.hasRun(after.runId, {});
        return null;
      case 'wait':
        return after.until;
      case 'start_again':
        if (!this.searchedBare) this.breaches.push('started again without being certain');
        this.save({ intentAt: null, ambiguousSince: null, startedAt: null, deadlineAt: null });
        return null;
      case 'settle':
        return this.settle(after.decision);
    }
  }

  private poll(): number | null {
    if (beforePoll(this.saved) === 'abort') {
      this.save({ phase: 'aborting', abort: 'cancel' });
      return null;
    }
    const result = this.server.look(this.now);
    const after = afterPoll(this.saved, result, this.now, intervalMs);
    const late = this.now >= (this.saved.deadlineAt as number);
    const unknown = !result.ok && result.failure.notFound;
    if (late && !unknown && !(result.ok && result.value.final) && after.do !== 'abort') {
      this.breaches.push(`at the deadline it would ${after.do}`);
    }
    if (this.crashes()) return null;
    return this.carryOut(after, {
      polls: this.saved.polls + 1,
      pollFailures: result.ok ? 0 : this.saved.pollFailures + 1,
    });
  }

  private abort(): number | null {
    const result: CallResult<RunView> = this.server.abort(this.now);
    if (this.crashes()) return null;
    const after = afterAbort(this.saved, this.spec, result, this.now);
    return this.carryOut(after, { abortTries: this.saved.abortTries + 1 });
  }

  private carryOut(after: AfterLook, counted: Partial<Attempt>): number | null {
    const { unknownSince, unknownTimes } = this.saved;
    switch (after.do) {
      case 'wait':
        this.save({ ...counted, ...seen(after.sighting) });
        return after.until;
      case 'doubt':
        this.save({ ...counted, unknownSince: unknownSince ?? this.now, unknownTimes: unknownTimes + 1 });
        return after.until;
      case 'hold':
        this.save(counted);
        return after.until;
      case 'abort':
        this.save({ ...counted, ...seen(after.sighting), phase: 'aborting', abort: after.reason });
        return null;
      case 'read':
        this.save({ ...counted, ...seen(after.sighting), phase: 'reading' });
        return null;
      case 'settle':
        this.save({ ...counted, ...seen(after.sighting) });
        return this.settle(after.decision);
    }
  }

  private read(): number | null {
    const before = beforeRead(this.saved, this.spec, pageBytes, this.now);
    if (before.do === 'wait') return before.until;
    if (before.do === 'finish') return this.settle(before.decision);
    const { slice } = before;
    if (this.saved.slice === null) this.save({ slice });
    if (this.crashes()) return null;
    const requestedAt = this.now;
    const result = this.server.read(slice, this.now);
    this.now += 200;
    const after = afterRead(this.saved, slice, result, requestedAt, pageBytes);
    switch (after.do) {
      case 'write':
        return this.write(after);
      case 'shrink':
        this.save({ slice: after.slice });
        return null;
      case 'end':
        return this.settle(decideFinished(this.saved, this.spec, this.now, after.shortOf));
      case 'wait':
      case 'hold':
        this.save({ reads: this.saved.reads + 1 });
        return after.until;
      case 'give_up':
        return this.settle({ outcome: 'failed', message: after.message, warnings: [], finishedAt: this.now });
    }
  }

  private write(after: {
    slice: Slice;
    lines: readonly string[];
    replan: boolean;
    end: boolean;
  }): number | null {
    const publish = () => {
      if (!this.pages.has(after.slice.index)) this.pages.set(after.slice.index, after.lines);
      return this.pages.get(after.slice.index)?.length as number;
    };
    if (after.replan) this.save({ slice: after.slice });
    if (this.crashes()) {
      // Frozen, not dead: it writes when it wakes, long after somebody else has taken over.
      if (this.dice.strikes(2)) this.late.push(publish);
      return null;
    }
    const durable = publish();
    if (this.crashes()) return null;
    const { end, ...counted } = afterWrite(this.saved, after, durable, pageBytes);
    this.save({ ...counted, reads: 0 });
    if (this.crashes() || !end) return null;
    return this.settle(decideFinished(this.saved, this.spec, this.now, null));
  }
}

function seen(sighting: object | null): Partial<Attempt> {
  return sighting === null ? {} : { ...sighting, unknownSince: null, unknownTimes: 0 };
}
