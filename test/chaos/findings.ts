import type { LedgerEntry, SimRun } from '../sim/index.js';
import type { Evidence } from './evidence.js';

/** What was found, as counts; every one but the first five has to be zero. */
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

/** The evidence as the checks look at it, and what they find. */
export class Inquiry {
  readonly breaches: string[] = [];
  readonly findings: Findings;
  readonly runs: ReadonlyMap<string, SimRun>;
  readonly markers: ReadonlyMap<string, string>;
  readonly abortedRuns: ReadonlySet<string>;

  constructor(readonly evidence: Evidence) {
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

  breach(name: keyof Findings, message: string, by = 1): void {
    this.findings[name] += by;
    this.breaches.push(`${name}: ${message}`);
  }

  startsOf(marker: string): LedgerEntry[] {
    return this.evidence.starts.filter((start) => markerOf(start) === marker);
  }
}

/** The search text of a start's input, by which scrapes are told apart in the ledger. */
export function markerOf(start: LedgerEntry): string {
  const input = JSON.parse(start.input ?? '{}') as { search?: string; searchStringsArray?: string[] };
  return input.search ?? input.searchStringsArray?.[0] ?? '';
}
