import { DelayedError, type Job, UnrecoverableError } from 'bullmq';
import { blankAttempt } from '../src/queue/attempt-store.js';
import type { Attempt } from '../src/run/attempt.js';
import { decide, outcomeClass, outcomeDocument, type Subject } from '../src/run/outcome.js';
import { cleanText } from '../src/scrape/clean-text.js';
import { defaultBatch, jobKey, safeId, splitJobKey } from '../src/scrape/identity.js';
import type { OutcomeDocument, Scrape } from '../src/scrape/types.js';
import type { WorkerContext } from './context.js';
import { factsOf, type PublicJob, type ScrapeFacts } from './public-job.js';
import { publish } from './publish.js';

// How a public job ends, and how it is turned away without a run.

/** A job nobody can make a scrape of. With a sound identity it still leaves an outcome document. */
export async function refuse(ctx: WorkerContext, job: Job, read: PublicJob): Promise<OutcomeDocument> {
  const message = read.ok ? '' : read.message;
  const facts = factsOf(read, null);
  ctx.metrics.jobInvalid('bullmq');
  ctx.log.warn(
    { event: 'job.invalid', source: 'bullmq', jobId: cleanText(job.id ?? '', 80), message },
    'a job was rejected',
  );
  if (facts === null) return turnAway(ctx, job, unnamed(job), message);
  const settled = await ctx.sink.find(facts.batch, facts.id);
  // Refusing must not overwrite the outcome of a scrape that was settled under this id before.
  if (settled !== null) return turnAway(ctx, job, facts, message);
  return refuseAs(ctx, job, facts, null, 'rejected', message);
}

/** What to call a job whose name contradicts itself. */
function unnamed(job: Job): Subject {
  const named = splitJobKey(job.id ?? '') ?? { id: safeId(job.id ?? ''), batch: defaultBatch };
  return { ...named, server: '', tool: '', meta: null };
}

/** The job is no scrape of its own: nothing is counted or written, and its producer still finds a document on it. */
export async function turnAway(
  ctx: WorkerContext,
  job: Job,
  subject: Subject,
  message: string,
  outcome: 'rejected' | 'errored' = 'rejected',
): Promise<OutcomeDocument> {
  const attempt = blankAttempt(jobKey(subject.batch, subject.id), job.timestamp);
  const document = outcomeDocument(attempt, subject, decide(outcome, message, ctx.now()), null);
  return finish(job, document, 'warn');
}

export async function refuseAs(
  ctx: WorkerContext,
  job: Job,
  facts: ScrapeFacts,
  attempt: Attempt | null,
  outcome: 'rejected' | 'errored' | 'cancelled',
  message: string,
): Promise<OutcomeDocument> {
  const known = attempt ?? (await acceptForRefusal(ctx, job, facts));
  const document = await publish(ctx, known, facts, decide(outcome, message, ctx.now()), job.attemptsMade);
  return finish(job, document, facts.onEmpty);
}

async function acceptForRefusal(ctx: WorkerContext, job: Job, facts: ScrapeFacts): Promise<Attempt> {
  const key = jobKey(facts.batch, facts.id);
  const number = (await ctx.sink.lastAttempt(facts.batch, facts.id)) + 1;
  await ctx.redis.trawlAccept(
    ctx.keys.attempt(key),
    ctx.keys.batch(facts.batch),
    ctx.keys.waiting(key),
    job.id === key ? '' : (job.id as string),
    job.timestamp,
    '',
    Math.max(ctx.config.keep.settledMs, ctx.config.keep.failedMs),
    number,
    key,
  );
  const { attempt } = await ctx.store.load(key);
  if (attempt === null) throw new Error(`no attempt of ${key} after accepting it`);
  return attempt;
}

/** The document is the job's progress, set before it ends in either state (design A2). */
export async function finish(
  job: Job,
  document: OutcomeDocument,
  onEmpty: Scrape['onEmpty'],
): Promise<OutcomeDocument> {
  await job.updateProgress(document);
  if (outcomeClass(document.outcome, onEmpty) === 'failure') throw new UnrecoverableError(document.message);
  return document;
}

export async function later(ctx: WorkerContext, job: Job, token: string, ms: number): Promise<never> {
  await job.moveToDelayed(ctx.now() + ms, token);
  throw new DelayedError();
}

/** Ends a job that nothing can be done with, without a look into it; null when its run, or its end, is under way. */
export async function endPoison(
  ctx: WorkerContext,
  job: Job,
  message: string,
): Promise<OutcomeDocument | null> {
  const named = splitJobKey(job.id as string);
  if (named === null) return turnAway(ctx, job, unnamed(job), message, 'errored');
  const { attempt } = await ctx.store.load(job.id as string);
  if (attempt !== null && (attempt.phase !== 'queued' || attempt.jobId !== job.id)) return null;
  const servers = Object.keys(ctx.config.servers);
  const server = servers.length === 1 ? (servers[0] ?? '') : '';
  const facts = { ...named, server, tool: '', meta: null, onEmpty: 'warn', retries: 0 } as const;
  if (attempt !== null) {
    for (const name of servers) await ctx.queues.removeStage('start', name, attempt.scrape, attempt.n);
  }
  return refuseAs(ctx, job, facts, attempt, 'errored', message);
}
