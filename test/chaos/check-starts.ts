import type { LedgerEntry } from '../sim/index.js';
import { type Inquiry, markerOf } from './findings.js';
import type { Submitted } from './producer.js';

/** A call whose cancel was under way may still start; this long after it none may. */
const cancelSlackMs = 2_000;

/** Calls that made a run, against the attempts that scrapes with that input had. */
export function checkStarts(inquiry: Inquiry): void {
  const attempts = new Map<string, number>();
  const scrapes = new Map<string, Submitted[]>();
  for (const submitted of inquiry.evidence.submitted) {
    const { marker, key } = submitted.job;
    const made = inquiry.evidence.disk.get(key)?.outcome?.attempt ?? 1;
    attempts.set(marker, (attempts.get(marker) ?? 0) + made);
    scrapes.set(marker, [...(scrapes.get(marker) ?? []), submitted]);
  }
  const calls = new Map<string, Set<string>>();
  for (const start of inquiry.evidence.starts) {
    const marker = markerOf(start);
    const made = calls.get(marker) ?? new Set();
    calls.set(marker, made.add(`${start.session} ${start.call}`));
    const owners = scrapes.get(marker) ?? [];
    if (owners.length === 1) checkCancel(inquiry, owners[0] as Submitted, start);
  }
  for (const [marker, made] of calls) {
    const allowed = attempts.get(marker) ?? 0;
    if (made.size <= allowed) continue;
    const runs = inquiry.startsOf(marker).map(({ runId }) => runId);
    inquiry.breach(
      'duplicateStarts',
      `"${marker}" (${scrapes.get(marker)?.[0]?.job.key}) was started ${made.size} times for ${allowed} attempts: ${runs.join(', ')}`,
      made.size - allowed,
    );
  }
}

function checkCancel(inquiry: Inquiry, { job, cancel }: Submitted, start: LedgerEntry): void {
  if (cancel === null || cancel.result !== 'cancelling' || start.at <= cancel.at + cancelSlackMs) return;
  // A call that had left its worker, or a worker that was frozen just before it, comes late; it is aborted then.
  const late = inquiry.evidence.struck.some(
    ({ kind, from, to }) =>
      (kind === 'sigstop' || kind.endsWith('_stall') || kind === 'redis_restart') &&
      from <= start.at &&
      to >= cancel.at - 1_000,
  );
  if (late && inquiry.abortedRuns.has(start.runId ?? '')) return;
  const seconds = ((start.at - cancel.at) / 1000).toFixed(1);
  inquiry.breach(
    'startedAfterCancel',
    `${job.key} was started ${seconds} s after its cancel (${start.runId})`,
  );
}
