import { DelayedError, type Job, UnrecoverableError } from 'bullmq';
import { TrawlError } from '../src/errors.js';
import { blankAttempt, type Lock, type Published } from '../src/queue/attempt-store.js';
import { publicQueue } from '../src/queue/names.js';
import { publicEventBound } from '../src/queue/queues.js';
import type { Attempt } from '../src/run/attempt.js';
import { decide, outcomeClass, outcomeDocument, type Subject } from '../src/run/outcome.js';
import { cleanText } from '../src/scrape/clean-text.js';
import { defaultBatch, jobKey, safeId, splitJobKey } from '../src/scrape/identity.js';
import type { Outcome, OutcomeDocument, Scrape } from '../src/scrape/types.js';
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
  return finish(ctx, job, document, 'warn');
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
  return finish(ctx, job, document, facts.onEmpty);
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

/** The document is the job's progress, set before it ends in either state (design A2), and only by who has the job. */
export async function finish(
  ctx: WorkerContext,
  job: Job,
  document: OutcomeDocument,
  onEmpty: Scrape['onEmpty'],
): Promise<OutcomeDocument> {
  const { keys, redis } = ctx;
  const { key, token } = lockOf(ctx, job);
  const told = await redis.trawlTell(
    keys.job(publicQueue, job.id as string),
    key,
    keys.publicEvents,
    token,
    JSON.stringify(document),
    job.id as string,
    publicEventBound,
  );
  if (told === 0) throw new TrawlError('lock_lost', `the public job ${job.id} is another worker's, or gone`);
  if (outcomeClass(document.outcome, onEmpty) === 'failure') throw new UnrecoverableError(document.message);
  return document;
}

export function lockOf(ctx: WorkerContext, job: Job): Lock {
  return { key: ctx.keys.lock(publicQueue, job.id as string), token: job.token ?? '' };
}

/** Of a settled scrape whose results were moved away, and whose job has lost the document to some other program. */
export function forgotten(
  attempt: Attempt,
  subject: Subject,
  published: Published | null,
  now: number,
): OutcomeDocument {
  const message = 'Its outcome document is gone, from the results and from its job.';
  const decision = decide((published?.outcome || 'lost') as Outcome, message, now);
  return outcomeDocument(attempt, subject, decision, null);
}

export async function later(ctx: WorkerContext, job: Job, token: string, ms: number): Promise<never> {
  await job.moveToDelayed(ctx.now() + ms, token);
  throw new DelayedError();
}

/**
 * Ends a job that nothing can be done with, without a look into it; null when what it has come to decides how it ends.
 *
 * @param underWay also when its run is under way, which is aborted then
 * @throws TrawlError lock_lost when another worker has the job by now, and may be getting on with it
 */
export async function endPoison(
  ctx: WorkerContext,
  job: Job,
  message: string,
  underWay = false,
): Promise<OutcomeDocument | null> {
  const named = splitJobKey(job.id as string);
  if (named === null) return turnAway(ctx, job, unnamed(job), message, 'errored');
  const { attempt } = await ctx.store.load(job.id as string);
  const servers = Object.keys(ctx.config.servers);
  const server = attempt?.spec?.server ?? (servers.length === 1 ? (servers[0] ?? '') : '');
  const tool = attempt?.spec?.tool ?? '';
  const facts = { ...named, server, tool, meta: null, onEmpty: 'warn', retries: 0 } as const;
  if (attempt === null) return refuseAs(ctx, job, facts, null, 'errored', message);
  if (attempt.jobId !== job.id) return null;
  const decision = decide('errored', message, ctx.now());
  const written = await ctx.store.advance(
    attempt,
    lockOf(ctx, job),
    { lowest: 'queued', highest: underWay ? 'reading' : 'queued' },
    'decided',
    { decision },
  );
  if (written === 'stale') return null;
  if (attempt.runId === null) {
    for (const name of servers) await ctx.queues.removeStage('start', name, attempt.scrape, attempt.n);
  } else if (attempt.endedAt === null && server !== '') await ctx.queues.addOrphan(server, attempt.runId);
  if (server !== '') await ctx.server(server).slots.release(attempt.scrape);
  const document = await publish(ctx, attempt, facts, decision, job.attemptsMade);
  return finish(ctx, job, document, 'warn');
}
