import type { Queues } from './queues.js';
import type { ScrapeStatus } from './status.js';

export type Retried =
  /** Its next attempt, by number. */
  | { readonly result: 'retrying'; readonly attempt: number }
  /** It did not fail: it keeps its outcome, and nothing is paid for again. */
  | { readonly result: 'settled' }
  | { readonly result: 'under_way' }
  /** Its outcome may be on disk, but Redis has no job to try again. */
  | { readonly result: 'forgotten' };

/** Tries a failed scrape again by BullMQ's own retry of its public job: what any other program's retry does (design A2). */
export async function retryScrape(
  queues: Queues,
  { key, attempt, outcome, jobState }: ScrapeStatus,
): Promise<Retried> {
  switch (jobState) {
    case 'failed': {
      const job = await queues.publicJob(attempt?.jobId ?? key);
      await job?.retry('failed');
      return { result: 'retrying', attempt: (outcome?.attempt ?? attempt?.n ?? 0) + 1 };
    }
    case 'completed':
      return { result: 'settled' };
    case 'unknown':
      return { result: 'forgotten' };
    default:
      return { result: 'under_way' };
  }
}
