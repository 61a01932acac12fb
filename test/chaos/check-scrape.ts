import { isDeepStrictEqual } from 'node:util';
import { outcomeClass } from '../../src/run/outcome.js';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import type { SimRun } from '../sim/index.js';
import { wrongEvents } from './events.js';
import type { Item, OnDisk } from './evidence.js';
import type { Inquiry } from './findings.js';
import type { PlannedJob } from './jobs.js';
import type { Submitted } from './producer.js';

/** One scrape: its events, its items, its outcome, its public job. */
export function checkScrape(inquiry: Inquiry, submitted: Submitted): void {
  const { job } = submitted;
  const disk = inquiry.evidence.disk.get(job.key) as OnDisk;
  const events = inquiry.evidence.told.get(job.key) ?? [];
  const told = events.filter((label) => label === 'scrape.settled').length;
  if (told > 1) inquiry.breach('doublySettled', `${job.key} was settled ${told} times`, told - 1);
  const { outcome } = disk;
  const removed = submitted.removedAt !== null;
  if (outcome === null || told === 0) {
    // Removed before anybody had taken it, it never was one.
    if (removed && outcome === null && told === 0 && inquiry.startsOf(job.marker).length === 0) return;
    inquiry.breach('lost', `${job.key} (${job.kind}, via ${job.via}) has ${told} events and no outcome`);
    return;
  }
  for (const fault of wrongEvents(events, outcome)) inquiry.breach('wrongEvents', `${job.key}: ${fault}`);
  checkItems(inquiry, job, disk, outcome);
  checkOutcome(inquiry, submitted, outcome);
  if (!removed) checkPublicJob(inquiry, job, outcome);
}

function checkItems(inquiry: Inquiry, job: PlannedJob, disk: OnDisk, outcome: OutcomeDocument): void {
  const run = outcome.runId === null ? null : (inquiry.runs.get(outcome.runId) ?? null);
  for (const items of disk.archived) {
    const of = items[0]?.run;
    if (of !== undefined) checkOrder(inquiry, job, items, of, items.length);
  }
  // A cancel keeps what was written and reads nothing more.
  const cut = outcome.outcome === 'cancelled' || outcome.outcome === 'start_unknown' || run === null;
  checkOrder(inquiry, job, disk.items, outcome.runId ?? '', cut ? disk.items.length : run.readable);
  const agrees = outcome.items === disk.items.length && outcome.pages === disk.pages;
  if (!agrees && !wokeUpLate(inquiry, outcome, disk)) {
    inquiry.breach(
      'wrongDocuments',
      `${job.key} says ${outcome.items} items in ${outcome.pages} pages; on disk are ${disk.items.length} in ${disk.pages}`,
    );
  }
}

/** After a cancel nobody waits for a writer that is frozen: the page in its hands may appear once it wakes up. */
function wokeUpLate(inquiry: Inquiry, outcome: OutcomeDocument, disk: OnDisk): boolean {
  const at = Date.parse(outcome.finishedAt);
  return (
    outcome.outcome === 'cancelled' &&
    disk.pages === outcome.pages + 1 &&
    inquiry.evidence.struck.some(({ kind, from, to }) => kind === 'sigstop' && from < at && to > at)
  );
}

function checkOrder(
  inquiry: Inquiry,
  job: PlannedJob,
  items: readonly Item[],
  run: string,
  expected: number,
): void {
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
  if (missing > 0) inquiry.breach('missingItems', `${about} lacks ${missing} of ${expected} items`, missing);
  if (doubled > 0) inquiry.breach('doubledItems', `${about} has ${doubled} items twice`, doubled);
  if (wrong > 0) inquiry.breach('wrongItems', `${about} has ${wrong} items out of order or of others`, wrong);
}

function checkOutcome(inquiry: Inquiry, submitted: Submitted, outcome: OutcomeDocument): void {
  const { job } = submitted;
  const run = outcome.runId === null ? null : (inquiry.runs.get(outcome.runId) ?? null);
  const wrong = (why: string) =>
    inquiry.breach(
      'wrongOutcomes',
      `${job.key} (${job.kind}) ended ${outcome.outcome}: ${why} (${outcome.message})`,
    );
  if (outcome.runId !== null && inquiry.markers.get(outcome.runId) !== job.marker) {
    inquiry.breach('sharedRuns', `${job.key} holds run ${outcome.runId}, which was started for another`);
  }
  switch (outcome.outcome) {
    case 'cancelled':
      if (submitted.cancel === null && submitted.removedAt === null) wrong('nobody cancelled it');
      return;
    case 'rejected':
      // -32602 refuses an input before anything is done.
      if ((inquiry.evidence.stats.faultsFired.rpc_invalid_params ?? 0) === 0)
        wrong('the server refused nothing');
      if (outcome.runId !== null) wrong('a run exists');
      return;
    case 'start_unknown':
      inquiry.findings.startUnknown += 1;
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
  inquiry.breach('wrongDocuments', `${job.key} cost ${job.usageUsd} and says ${outcome.usageUsd}`);
}

function checkPublicJob(inquiry: Inquiry, job: PlannedJob, outcome: OutcomeDocument): void {
  const state = inquiry.evidence.jobs.get(job.key);
  if (state === undefined || !state.finished) {
    inquiry.breach('lost', `the public job ${job.key} has not ended (${outcome.outcome})`);
    return;
  }
  const failure = outcomeClass(outcome.outcome, job.onEmpty) === 'failure';
  const told = failure
    ? state.failedReason === outcome.message
    : isDeepStrictEqual(state.returnvalue, outcome);
  if (!told || !isDeepStrictEqual(state.progress, outcome)) {
    const { failedReason, progress, returnvalue } = state;
    const said = JSON.stringify({ failedReason, progress, returnvalue }).slice(0, 2_000);
    inquiry.breach(
      'wrongDocuments',
      `the public job ${job.key} ended otherwise than its outcome.json: ${said}`,
    );
  }
}

function outcomeOfRun(run: SimRun, job: PlannedJob): OutcomeDocument['outcome'] {
  if (run.status === 'ABORTED') return 'deadline_exceeded';
  if (run.status !== 'SUCCEEDED') return 'failed';
  if (run.readable === 0 && job.minItems > 0) return 'empty';
  return run.readable < job.minItems ? 'low_count' : 'succeeded';
}
