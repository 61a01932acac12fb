import { isDeepStrictEqual } from 'node:util';
import { outcomeClass } from '../../src/run/outcome.js';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import type { LedgerEntry, SimRun } from '../sim/index.js';
import { wrongEvents } from './events.js';
import type { Evidence, Item, OnDisk } from './evidence.js';
import type { PlannedJob } from './jobs.js';
import type { Submitted } from './producer.js';

/** What was found, as counts; every one but the first four has to be zero. */
export interface Findings {
  scrapes: number;
  starts: number;
  secondRunsAborted: number;
  startUnknown: number;
  /** Overdue runs and second runs that ended by themselves while the fleet was in pieces. */
  lateInTrouble: number;
  duplicateStarts: number;
  secondRunsMissed: number;
  lost: number;
  doublySettled: number;
  orphanRuns: number;
  overdueRuns: number;
  sharedRuns: number;
  missingItems: number;
  doubledItems: number;
  wrongItems: number;
  wrongOutcomes: number;
  wrongDocuments: number;
  wrongCounters: number;
  wrongEvents: number;
  startedAfterCancel: number;
  overLimit: number;
  slotsLeaked: number;
  leftovers: number;
}

export interface Verdict {
  readonly findings: Findings;
  /** One sentence a breach. */
  readonly breaches: readonly string[];
}

/**
 * Promises with a time in them hold where somebody is there to keep them: this much of the time, at least two workers were
 * whole and Redis was there.
 */
const wholeMs = { overdue: 40_000, secondRun: 45_000 };
/** A call whose cancel was under way may still start; this long after it none may. */
const cancelSlackMs = 2_000;
const enough = new Set<keyof Findings>([
  'scrapes',
  'starts',
  'secondRunsAborted',
  'startUnknown',
  'lateInTrouble',
]);

/** Compares what the server did with what Redis and the disk say, promise by promise. */
export function check(evidence: Evidence, runsLimit: number): Verdict {
  const checker = new Checker(evidence, runsLimit);
  checker.checkAll();
  return { findings: checker.findings, breaches: checker.breaches };
}

export function isBreach(name: keyof Findings): boolean {
  return !enough.has(name);
}

class Checker {
  readonly breaches: string[] = [];
  readonly findings: Findings;
  private readonly runs: ReadonlyMap<string, SimRun>;
  private readonly markers: ReadonlyMap<string, string>;
  private readonly abortedRuns: ReadonlySet<string>;

  constructor(
    private readonly evidence: Evidence,
    private readonly runsLimit: number,
  ) {
    this.runs = new Map(evidence.runs.map((run) => [run.runId, run]));
    this.markers = new Map(evidence.starts.map((start) => [start.runId ?? '', markerOf(start)]));
    this.abortedRuns = new Set(evidence.aborts.map(({ runId }) => runId ?? ''));
    this.findings = {
      scrapes: evidence.submitted.length,
      starts: evidence.starts.length,
      secondRunsAborted: 0,
      startUnknown: 0,
      lateInTrouble: 0,
      duplicateStarts: 0,
      secondRunsMissed: 0,
      lost: 0,
      doublySettled: 0,
      orphanRuns: 0,
      overdueRuns: 0,
      sharedRuns: 0,
      missingItems: 0,
      doubledItems: 0,
      wrongItems: 0,
      wrongOutcomes: 0,
      wrongDocuments: 0,
      wrongCounters: 0,
      wrongEvents: 0,
      startedAfterCancel: 0,
      overLimit: 0,
      slotsLeaked: 0,
      leftovers: 0,
    };
  }

  checkAll(): void {
    for (const submitted of this.evidence.submitted) this.checkScrape(submitted);
    this.checkStarts();
    this.checkRuns();
    this.checkLimit();
    this.checkCounters();
    const { slots, leftovers } = this.evidence;
    if (slots.length > 0) this.breach('slotsLeaked', `slots still held: ${slots.join(', ')}`, slots.length);
    if (leftovers.length > 0) {
      this.breach('leftovers', `jobs left: ${leftovers.slice(0, 5).join(', ')}`, leftovers.length);
    }
  }

  private breach(name: keyof Findings, message: string, by = 1): void {
    this.findings[name] += by;
    this.breaches.push(`${name}: ${message}`);
  }

  private checkScrape(submitted: Submitted): void {
    const { job } = submitted;
    const disk = this.evidence.disk.get(job.key) as OnDisk;
    const events = this.evidence.told.get(job.key) ?? [];
    const told = events.filter((label) => label === 'scrape.settled').length;
    if (told > 1) this.breach('doublySettled', `${job.key} was settled ${told} times`, told - 1);
    const { outcome } = disk;
    const removed = submitted.removedAt !== null;
    if (outcome === null || told === 0) {
      // Removed before anybody had taken it, it never was one.
      if (removed && outcome === null && told === 0 && this.startsOf(job.marker).length === 0) return;
      this.breach('lost', `${job.key} (${job.kind}, via ${job.via}) has ${told} events and no outcome`);
      return;
    }
    for (const fault of wrongEvents(events, outcome)) this.breach('wrongEvents', `${job.key}: ${fault}`);
    this.checkItems(job, disk, outcome);
    this.checkOutcome(submitted, outcome);
    if (!removed) this.checkPublicJob(job, outcome);
  }

  private checkItems(job: PlannedJob, disk: OnDisk, outcome: OutcomeDocument): void {
    const run = outcome.runId === null ? null : (this.runs.get(outcome.runId) ?? null);
    for (const items of disk.archived) {
      const of = items[0]?.run;
      if (of !== undefined) this.checkOrder(job, items, of, items.length);
    }
    // A cancel keeps what was written and reads nothing more.
    const cut = outcome.outcome === 'cancelled' || outcome.outcome === 'start_unknown' || run === null;
    this.checkOrder(job, disk.items, outcome.runId ?? '', cut ? disk.items.length : run.readable);
    const agrees = outcome.items === disk.items.length && outcome.pages === disk.pages;
    if (!agrees && !this.wokeUpLate(outcome, disk)) {
      this.breach(
        'wrongDocuments',
        `${job.key} says ${outcome.items} items in ${outcome.pages} pages; on disk are ${disk.items.length} in ${disk.pages}`,
      );
    }
  }

  /** After a cancel nobody waits for a writer that is frozen: the page in its hands may appear once it wakes up. */
  private wokeUpLate(outcome: OutcomeDocument, disk: OnDisk): boolean {
    const at = Date.parse(outcome.finishedAt);
    return (
      outcome.outcome === 'cancelled' &&
      disk.pages === outcome.pages + 1 &&
      this.evidence.struck.some(({ kind, from, to }) => kind === 'sigstop' && from < at && to > at)
    );
  }

  private checkOrder(job: PlannedJob, items: readonly Item[], run: string, expected: number): void {
    const seen = new Set<number>();
    let doubled = 0;
    let wrong = 0;
    let highest = -1;
    for (const item of items) {
      if (item.run !== run) wrong += 1;
      else if (seen.has(item.index)) doubled += 1;
      else if (item.index < highest) wrong += 1;
      highest = Math.max(highest, item.index);
      seen.add(item.index);
    }
    let missing = 0;
    for (let index = 0; index < expected; index += 1) if (!seen.has(index)) missing += 1;
    const about = `${job.key} (${job.kind}, run ${run})`;
    if (missing > 0) this.breach('missingItems', `${about} lacks ${missing} of ${expected} items`, missing);
    if (doubled > 0) this.breach('doubledItems', `${about} has ${doubled} items twice`, doubled);
    if (wrong > 0) this.breach('wrongItems', `${about} has ${wrong} items out of order or of others`, wrong);
  }

  private checkOutcome(submitted: Submitted, outcome: OutcomeDocument): void {
    const { job } = submitted;
    const run = outcome.runId === null ? null : (this.runs.get(outcome.runId) ?? null);
    const wrong = (why: string) =>
      this.breach(
        'wrongOutcomes',
        `${job.key} (${job.kind}) ended ${outcome.outcome}: ${why} (${outcome.message})`,
      );
    if (outcome.runId !== null && this.markers.get(outcome.runId) !== job.marker) {
      this.breach('sharedRuns', `${job.key} holds run ${outcome.runId}, which was started for another`);
    }
    switch (outcome.outcome) {
      case 'cancelled':
        if (submitted.cancel === null && submitted.removedAt === null) wrong('nobody cancelled it');
        return;
      case 'rejected':
        // -32602 refuses an input before anything is done.
        if ((this.evidence.stats.faultsFired.rpc_invalid_params ?? 0) === 0)
          wrong('the server refused nothing');
        if (outcome.runId !== null) wrong('a run exists');
        return;
      case 'start_unknown':
        this.findings.startUnknown += 1;
        return;
      case 'expired':
      case 'lost':
      case 'errored':
      case 'capped':
        wrong('nothing here can end so');
        return;
      case 'succeeded':
      case 'empty':
      case 'low_count':
      case 'failed':
      case 'deadline_exceeded':
        break;
      default:
        outcome.outcome satisfies never;
    }
    if (run === null) {
      wrong('its run is unknown to the server');
      return;
    }
    const expected = outcomeOfRun(run, job);
    if (outcome.outcome !== expected) wrong(`its run is ${run.status} with ${run.readable} items`);
    const retried = expected === 'failed' || (expected === 'empty' && job.onEmpty === 'retry');
    if (retried && outcome.attempt <= job.retries && submitted.cancel === null)
      wrong(`attempt ${outcome.attempt} was the last`);
    // A run that was cut short cost less, and how much it cost in earlier attempts is not kept.
    const whole = run.status === 'SUCCEEDED' || run.status === 'FAILED';
    if (!whole || outcome.attempt > 1 || outcome.usageUsd === job.usageUsd) return;
    this.breach('wrongDocuments', `${job.key} cost ${job.usageUsd} and says ${outcome.usageUsd}`);
  }

  private checkPublicJob(job: PlannedJob, outcome: OutcomeDocument): void {
    const state = this.evidence.jobs.get(job.key);
    if (state === undefined || !state.finished) {
      this.breach('lost', `the public job ${job.key} has not ended (${outcome.outcome})`);
      return;
    }
    const failure = outcomeClass(outcome.outcome, job.onEmpty) === 'failure';
    const told = failure
      ? state.failedReason === outcome.message
      : isDeepStrictEqual(state.returnvalue, outcome);
    if (!told || !isDeepStrictEqual(state.progress, outcome)) {
      const { failedReason, progress, returnvalue } = state;
      const said = JSON.stringify({ failedReason, progress, returnvalue }).slice(0, 2_000);
      this.breach(
        'wrongDocuments',
        `the public job ${job.key} ended otherwise than its outcome.json: ${said}`,
      );
    }
  }

  /** Calls that made a run, against the attempts that scrapes with that input had. */
  private checkStarts(): void {
    const attempts = new Map<string, number>();
    const scrapes = new Map<string, Submitted[]>();
    for (const submitted of this.evidence.submitted) {
      const { marker, key } = submitted.job;
      const made = this.evidence.disk.get(key)?.outcome?.attempt ?? 1;
      attempts.set(marker, (attempts.get(marker) ?? 0) + made);
      scrapes.set(marker, [...(scrapes.get(marker) ?? []), submitted]);
    }
    const calls = new Map<string, Set<string>>();
    for (const start of this.evidence.starts) {
      const marker = markerOf(start);
      const made = calls.get(marker) ?? new Set();
      calls.set(marker, made.add(`${start.session} ${start.call}`));
      const owners = scrapes.get(marker) ?? [];
      if (owners.length === 1) this.checkCancel(owners[0] as Submitted, start);
    }
    for (const [marker, made] of calls) {
      const allowed = attempts.get(marker) ?? 0;
      if (made.size <= allowed) continue;
      const runs = this.startsOf(marker).map(({ runId }) => runId);
      this.breach(
        'duplicateStarts',
        `"${marker}" (${scrapes.get(marker)?.[0]?.job.key}) was started ${made.size} times for ${allowed} attempts: ${runs.join(', ')}`,
        made.size - allowed,
      );
    }
  }

  private checkCancel({ job, cancel }: Submitted, start: LedgerEntry): void {
    if (cancel === null || cancel.result !== 'cancelling' || start.at <= cancel.at + cancelSlackMs) return;
    // A call that had left its worker, or a worker that was frozen just before it, comes late; it is aborted then.
    const late = this.evidence.struck.some(
      ({ kind, from, to }) =>
        (kind === 'sigstop' || kind.endsWith('_stall') || kind === 'redis_restart') &&
        from <= start.at &&
        to >= cancel.at - 1_000,
    );
    if (late && this.abortedRuns.has(start.runId ?? '')) return;
    const seconds = ((start.at - cancel.at) / 1000).toFixed(1);
    this.breach(
      'startedAfterCancel',
      `${job.key} was started ${seconds} s after its cancel (${start.runId})`,
    );
  }

  /** Every run is over, has an owner or was ended by us, and no two scrapes have the same. */
  private checkRuns(): void {
    const { owners, submitted, disk } = this.evidence;
    for (const run of this.evidence.runs) {
      const about = `${run.runId} ("${this.markers.get(run.runId)}")`;
      if (!run.final) this.breach('orphanRuns', `${about} is still ${run.status}`);
      else if (owners.has(run.runId)) {
        // The server's own timeout is the deadline and a minute.
        if (run.status !== 'TIMED-OUT') continue;
        if (this.wholeMs(run.endAt - 60_000, run.endAt) < wholeMs.overdue) this.findings.lateInTrouble += 1;
        else this.breach('overdueRuns', `${about} went on past its deadline for a minute`);
      } else if (this.abortedRuns.has(run.runId)) this.findings.secondRunsAborted += 1;
      else if (this.isOfDouble(run.runId)) {
        if (this.wholeMs(run.startedAt, run.endAt) < wholeMs.secondRun) this.findings.lateInTrouble += 1;
        else
          this.breach(
            'secondRunsMissed',
            `${about}, the second of one call, ended by itself (${run.status})`,
          );
      } else this.breach('orphanRuns', `${about} had no owner and ended by itself (${run.status})`);
    }
    const holders = new Map<string, string>();
    for (const { job } of submitted) {
      const runId = disk.get(job.key)?.outcome?.runId ?? null;
      if (runId === null) continue;
      const other = holders.get(runId);
      if (other !== undefined) this.breach('sharedRuns', `${other} and ${job.key} share run ${runId}`);
      holders.set(runId, job.key);
    }
  }

  /** How much of a span at least two workers were whole, and Redis was there. */
  private wholeMs(from: number, to: number): number {
    let whole = 0;
    for (let at = from; at < to; at += 500) {
      const broken = this.evidence.struck.filter((fault) => fault.from <= at && fault.to > at);
      const workers = new Set(broken.map(({ worker }) => worker).filter((worker) => worker !== null));
      if (workers.size <= 1 && !broken.some(({ kind }) => kind === 'redis_restart')) whole += 500;
    }
    return whole;
  }

  private isOfDouble(runId: string): boolean {
    const start = this.evidence.starts.find((entry) => entry.runId === runId);
    return this.evidence.starts.some(
      ({ double, session, call }) => double === true && session === start?.session && call === start?.call,
    );
  }

  /** Runs under way at a time, the server's own second ones aside. */
  private checkLimit(): void {
    const changes = this.evidence.runs
      .filter(({ runId }) => this.evidence.owners.has(runId))
      .flatMap(({ startedAt, endAt }) => [
        { at: startedAt, by: 1 },
        { at: endAt, by: -1 },
      ])
      .sort((a, b) => a.at - b.at || a.by - b.by);
    let now = 0;
    let most = 0;
    for (const { by } of changes) {
      now += by;
      most = Math.max(most, now);
    }
    if (most > this.runsLimit) {
      this.breach(
        'overLimit',
        `${most} runs at a time, the limit is ${this.runsLimit}`,
        most - this.runsLimit,
      );
    }
  }

  private checkCounters(): void {
    const { submitted, disk, batches } = this.evidence;
    for (const [batch, counters] of batches) {
      const documents = submitted
        .filter(({ job }) => job.batch === batch)
        .map(({ job }) => disk.get(job.key)?.outcome ?? null)
        .filter((outcome): outcome is OutcomeDocument => outcome !== null);
      const expected: Record<string, number> = {
        submitted: documents.length,
        settled: documents.length,
        items: documents.reduce((sum, { items }) => sum + items, 0),
        usage: documents.reduce((sum, { usageUsd }) => sum + (usageUsd ?? 0), 0),
      };
      for (const { outcome } of documents) expected[`o:${outcome}`] = (expected[`o:${outcome}`] ?? 0) + 1;
      for (const [name, value] of Object.entries(expected)) {
        const counted = Number(counters[name] ?? 0);
        if (Math.abs(counted - value) < 1e-6) continue;
        this.breach('wrongCounters', `${batch}: ${name} is ${counted}, the documents say ${value}`);
      }
    }
  }

  private startsOf(marker: string): LedgerEntry[] {
    return this.evidence.starts.filter((start) => markerOf(start) === marker);
  }
}

function outcomeOfRun(run: SimRun, job: PlannedJob): OutcomeDocument['outcome'] {
  if (run.status === 'ABORTED') return 'deadline_exceeded';
  if (run.status !== 'SUCCEEDED') return 'failed';
  if (run.readable === 0 && job.minItems > 0) return 'empty';
  return run.readable < job.minItems ? 'low_count' : 'succeeded';
}

function markerOf(start: LedgerEntry): string {
  const input = JSON.parse(start.input ?? '{}') as { search?: string; searchStringsArray?: string[] };
  return input.search ?? input.searchStringsArray?.[0] ?? '';
}
