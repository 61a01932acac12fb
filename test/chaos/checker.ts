import type { OutcomeDocument } from '../../src/scrape/types.js';
import { checkLimit, checkRuns } from './check-runs.js';
import { checkScrape } from './check-scrape.js';
import { checkStarts } from './check-starts.js';
import type { Evidence } from './evidence.js';
import { Inquiry, type Verdict } from './findings.js';

/** Compares what the server did with what Redis and the disk say, promise by promise. */
export function check(evidence: Evidence, runsLimit: number): Verdict {
  const inquiry = new Inquiry(evidence);
  for (const submitted of evidence.submitted) checkScrape(inquiry, submitted);
  checkStarts(inquiry);
  checkRuns(inquiry);
  checkLimit(inquiry, runsLimit);
  checkCounters(inquiry);
  const { slots, leftovers } = evidence;
  if (slots.length > 0) inquiry.breach('slotsLeaked', `slots still held: ${slots.join(', ')}`, slots.length);
  if (leftovers.length > 0) {
    inquiry.breach('leftovers', `jobs left: ${leftovers.slice(0, 5).join(', ')}`, leftovers.length);
  }
  return { findings: inquiry.findings, breaches: inquiry.breaches };
}

function checkCounters(inquiry: Inquiry): void {
  const { submitted, disk, batches } = inquiry.evidence;
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
      inquiry.breach('wrongCounters', `${batch}: ${name} is ${counted}, the documents say ${value}`);
    }
  }
}
