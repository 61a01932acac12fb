import type { Inquiry } from './findings.js';

/**
 * Promises with a time in them hold where somebody is there to keep them: this much of the time, at least two workers were
 * whole and Redis was there.
 */
const least = { overdue: 40_000, secondRun: 45_000 };

/** Every run is over, has an owner or was ended by us, and no two scrapes have the same. */
export function checkRuns(inquiry: Inquiry): void {
  const { owners, submitted, disk } = inquiry.evidence;
  for (const run of inquiry.evidence.runs) {
    const about = `${run.runId} ("${inquiry.markers.get(run.runId)}")`;
    if (!run.final) inquiry.breach('orphanRuns', `${about} is still ${run.status}`);
    else if (owners.has(run.runId)) {
      // The server's own timeout is the deadline and a minute.
      if (run.status !== 'TIMED-OUT') continue;
      if (wholeMs(inquiry, run.endAt - 60_000, run.endAt) < least.overdue)
        inquiry.findings.lateInTrouble += 1;
      else inquiry.breach('overdueRuns', `${about} went on past its deadline for a minute`);
    } else if (inquiry.abortedRuns.has(run.runId)) inquiry.findings.secondRunsAborted += 1;
    else if (isOfDouble(inquiry, run.runId)) {
      if (wholeMs(inquiry, run.startedAt, run.endAt) < least.secondRun) inquiry.findings.lateInTrouble += 1;
      else
        inquiry.breach(
          'secondRunsMissed',
          `${about}, the second of one call, ended by itself (${run.status})`,
        );
    } else inquiry.breach('orphanRuns', `${about} had no owner and ended by itself (${run.status})`);
  }
  const holders = new Map<string, string>();
  for (const { job } of submitted) {
    const runId = disk.get(job.key)?.outcome?.runId ?? null;
    if (runId === null) continue;
    const other = holders.get(runId);
    if (other !== undefined) inquiry.breach('sharedRuns', `${other} and ${job.key} share run ${runId}`);
    holders.set(runId, job.key);
  }
}

/** How much of a span at least two workers were whole, and Redis was there. */
function wholeMs(inquiry: Inquiry, from: number, to: number): number {
  let whole = 0;
  for (let at = from; at < to; at += 500) {
    const broken = inquiry.evidence.struck.filter((fault) => fault.from <= at && fault.to > at);
    const workers = new Set(broken.map(({ worker }) => worker).filter((worker) => worker !== null));
    if (workers.size <= 1 && !broken.some(({ kind }) => kind === 'redis_restart')) whole += 500;
  }
  return whole;
}

function isOfDouble(inquiry: Inquiry, runId: string): boolean {
  const start = inquiry.evidence.starts.find((entry) => entry.runId === runId);
  return inquiry.evidence.starts.some(
    ({ double, session, call }) => double === true && session === start?.session && call === start?.call,
  );
}

/** Runs under way at a time, the server's own second ones aside. */
export function checkLimit(inquiry: Inquiry, runsLimit: number): void {
  const changes = inquiry.evidence.runs
    .filter(({ runId }) => inquiry.evidence.owners.has(runId))
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
  if (most > runsLimit) {
    inquiry.breach('overLimit', `${most} runs at a time, the limit is ${runsLimit}`, most - runsLimit);
  }
}
