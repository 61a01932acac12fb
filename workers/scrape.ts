import { setTimeout as delay } from 'node:timers/promises';
import { type Job, WaitingChildrenError, type Worker, type WorkerOptions } from 'bullmq';
import { acceptScrape, conflict } from '../src/queue/accept.js';
import type { Lock, Published } from '../src/queue/attempt-store.js';
import { outcomeIn } from '../src/queue/known.js';
import { publicQueue, type Stage, stageJobId } from '../src/queue/names.js';
import { startPriorityOf } from '../src/queue/priority.js';
import type { Attempt, Decision } from '../src/run/attempt.js';
import { cancelledMessage, outcomeClass, shouldRetry, totalUsage } from '../src/run/outcome.js';
import { retryDelay } from '../src/run/schedule.js';
import { cleanText } from '../src/scrape/clean-text.js';
import { jobKey } from '../src/scrape/identity.js';
import type { OutcomeDocument, Scrape } from '../src/scrape/types.js';
import { SinkHeldError } from '../src/sinks/contract.js';
import type { WorkerContext } from './context.js';
import { FetchingWorker } from './fetching-worker.js';
import { isDecision, isFlow, isOutOfHand } from './job-errors.js';
import { factsOf, readPublicJob, type ScrapeFacts } from './public-job.js';
import { publish } from './publish.js';
import { endPoison, finish, forgotten, later, lockOf, refuse, refuseAs, turnAway } from './scrape-end.js';
import { workerOptions } from './stage.js';
import { takeTurn } from './suspects.js';
import { mendUnreadable } from './unreadable.js';

/** Faults of ours at one public job after which it is settled as `errored`. */
const faultsAllowed = 12;

/**
 * Takes a public job twice: first to accept it, add its start job and park; then, its last child done, to publish the
 * outcome or begin the next attempt.
 */
export function createScrapeWorker(ctx: WorkerContext): Worker {
  const worker = new FetchingWorker(
    publicQueue,
    (job, token) => handle(ctx, job, token ?? ''),
    // Also for a job that BullMQ fails before it is handled.
    { ...workerOptions(ctx, 64, 20), ...retention(ctx) },
    ctx,
  );
  worker.on('stalled', (jobId) => {
    mendUnreadable(ctx, jobId).catch((error) =>
      ctx.log.warn({ event: 'redis.error', err: error }, 'Redis error'),
    );
  });
  return worker;
}

async function handle(ctx: WorkerContext, job: Job, token: string): Promise<OutcomeDocument> {
  keepForRetention(ctx, job);
  try {
    const crashes = job.stalledCounter ?? 0;
    if (job.deferredFailure) {
      // BullMQ's last word on it, far beyond what a suspect is allowed.
      const message = `Its job was given up (${cleanText(job.deferredFailure, 200)}) after ${crashes} crashes; look for the crash in the logs before you retry it.`;
      return (await endPoison(ctx, job, message, true)) ?? (await take(ctx, job, token));
    }
    const own = { id: job.id as string, token };
    const turn = await takeTurn(ctx, publicQueue, own, crashes, ctx.config.deadlineMs);
    if (turn.do === 'wait') return await later(ctx, job, token, turn.ms);
    if (turn.do === 'give_up') {
      const message = `This scrape crashed its workers ${crashes} times; look for the crash in the logs before you retry it.`;
      return (await endPoison(ctx, job, message)) ?? (await take(ctx, job, token));
    }
    try {
      return await take(ctx, job, token);
    } finally {
      await turn.done();
    }
  } catch (error) {
    if (error instanceof SinkHeldError) {
      ctx.metrics.sinkError(ctx.sink.name);
      ctx.metrics.sinkHeld(ctx.sink.name, true);
      ctx.log.warn(
        {
          event: 'sink.held',
          jobId: job.id,
          sink: ctx.sink.name,
          reason: error.reason,
          message: error.message,
        },
        'the sink refuses writes; held',
      );
      // In hand for a while: a long backlog would go round as fast as Redis allows, only to be held again.
      await delay(1_000, undefined, { signal: ctx.stopping }).catch(() => {});
      return later(ctx, job, token, 5_000);
    }
    if (isFlow(error) || isDecision(error)) throw error;
    if (isOutOfHand(error)) {
      ctx.log.warn(
        { event: 'lock.lost', jobId: job.id },
        'this job is gone, or in the hands of another worker',
      );
      throw error;
    }
    ctx.log.error(
      { event: 'step.fault', queue: publicQueue, err: error },
      'a step failed by a fault of ours',
    );
    return afterFault(ctx, job, token, error);
  }
}

/** Counted on the job itself: what cannot be read has no attempt to count on. */
async function afterFault(
  ctx: WorkerContext,
  job: Job,
  token: string,
  error: unknown,
): Promise<OutcomeDocument> {
  const key = ctx.keys.job(publicQueue, job.id as string);
  const faults = Number(await ctx.redis.hget(key, 'faults')) + 1;
  if ((await ctx.redis.trawlMend(key, 'faults', faults)) === 0) throw error;
  if (faults > faultsAllowed) {
    const reason = error instanceof Error ? error.message.slice(0, 200) : 'unknown';
    const ended = await endPoison(ctx, job, `Trawl failed ${faults} times at this job: ${reason}`);
    if (ended !== null) return ended;
  }
  return later(ctx, job, token, Math.min(60_000, 1_000 * 2 ** Math.min(6, faults - 1)));
}

async function take(ctx: WorkerContext, job: Job, token: string): Promise<OutcomeDocument> {
  const jobId = job.id as string;
  const read = readPublicJob(ctx, jobId, job.data);
  const identity = factsOf(read, null);
  if (identity === null) return refuse(ctx, job, read);
  const key = jobKey(identity.batch, identity.id);
  const { attempt, published } = await ctx.store.load(key);
  const { server, tool } = identity;
  ctx.tracing.note({ scrapeId: key, runId: attempt?.runId, server, tool, attempt: attempt?.n });
  if (attempt === null) return read.ok ? accept(ctx, job, token, read.scrape) : refuse(ctx, job, read);
  if (attempt.jobId !== jobId) return duplicate(ctx, job, token, identity, attempt);
  const facts = factsOf(read, attempt) ?? identity;
  const held = { ctx, job, token, facts, lock: lockOf(ctx, job) };
  if (attempt.phase === 'done') return again(held, attempt, published);
  if (attempt.phase === 'decided' && attempt.decision !== null)
    return conclude(held, attempt, attempt.decision);
  if (!read.ok && attempt.spec === null) return refuse(ctx, job, read);
  return resume(held, attempt);
}

/** A public job of a known scrape, in this worker's hands. */
interface Held {
  readonly ctx: WorkerContext;
  readonly job: Job;
  readonly token: string;
  readonly facts: ScrapeFacts;
  readonly lock: Lock;
}

async function accept(ctx: WorkerContext, job: Job, token: string, scrape: Scrape): Promise<OutcomeDocument> {
  const deps = { redis: ctx.redis, keys: ctx.keys, sink: ctx.sink, keep: ctx.config.keep };
  const accepted = await acceptScrape(deps, scrape, job.id as string, job.timestamp, job.attemptsMade > 0);
  switch (accepted.do) {
    case 'start': {
      ctx.metrics.scrapeSubmitted(scrape.server, scrape.tool);
      // Its producer's id may be another one: from here on the scrape's leads to the run's.
      ctx.log.info(
        {
          event: 'scrape.accepted',
          scrapeId: jobKey(scrape.batch, scrape.id),
          jobId: cleanText(job.id ?? '', 256),
          server: scrape.server,
          tool: scrape.tool,
        },
        'scrape accepted',
      );
      const { attempt } = accepted;
      if (attempt.cancelledAt !== null) {
        return refuseAs(ctx, job, scrape, attempt, 'cancelled', cancelledMessage(attempt));
      }
      return park({ ctx, job, token, facts: scrape, lock: lockOf(ctx, job) }, attempt, 0);
    }
    case 'conflict':
      ctx.log.warn({ event: 'scrape.conflict', scrapeId: jobKey(scrape.batch, scrape.id) }, accepted.message);
      return turnAway(ctx, job, scrape, accepted.message);
    case 'settled':
      ctx.metrics.scrapeDeduplicated(scrape.server);
      return finish(ctx, job, accepted.outcome, scrape.onEmpty);
    case 'known':
      return take(ctx, job, token);
    default:
      return accepted satisfies never;
  }
}

/** Another public job has this identity: this one ends as that one does, and pays for nothing. */
async function duplicate(
  ctx: WorkerContext,
  job: Job,
  token: string,
  facts: ScrapeFacts,
  attempt: Attempt,
): Promise<OutcomeDocument> {
  const digest = attempt.digest !== '' ? attempt.digest : await digestOfWaiting(ctx, attempt.jobId);
  if (digest !== '' && digest !== facts.digest) {
    const { message } = conflict(attempt.scrape);
    ctx.log.warn({ event: 'scrape.conflict', scrapeId: attempt.scrape }, message);
    return turnAway(ctx, job, facts, message);
  }
  if (attempt.phase === 'done') {
    const settled = await ctx.sink.find(facts.batch, facts.id);
    if (settled !== null) {
      ctx.metrics.scrapeDeduplicated(facts.server);
      return finish(ctx, job, settled.outcome, facts.onEmpty);
    }
  }
  return later(ctx, job, token, 5_000);
}

/** A scrape that only waits has no digest yet: its public job says what it asks for; '' when it does not. */
async function digestOfWaiting(ctx: WorkerContext, jobId: string): Promise<string> {
  const raw = await ctx.queues.publicData(jobId);
  if (raw === null) return '';
  return factsOf(readPublicJob(ctx, jobId, JSON.parse(raw)), null)?.digest ?? '';
}

/** A published scrape is taken again: after a crash it ends the same way; after a retry of a failure it goes on. */
async function again(held: Held, attempt: Attempt, published: Published | null): Promise<OutcomeDocument> {
  const { ctx, job, facts } = held;
  const settled = await ctx.sink.find(facts.batch, facts.id);
  // Results may have been moved away since; the job has kept the document.
  const document =
    settled?.outcome ?? outcomeIn(job.progress) ?? forgotten(attempt, facts, published, ctx.now());
  const retried = job.attemptsMade > (published?.finishes ?? 0);
  if (!retried || outcomeClass(document.outcome, facts.onEmpty) !== 'failure') {
    return finish(ctx, job, document, facts.onEmpty);
  }
  await ctx.store.nextAttempt(
    attempt,
    held.lock,
    attempt.usageBefore,
    published?.outcome ?? null,
    ctx.timing.claimAfterMs,
  );
  ctx.metrics.retry(facts.server, 'operator');
  ctx.log.info(
    {
      event: 'scrape.retried',
      scrapeId: attempt.scrape,
      server: facts.server,
      attempt: attempt.n,
      reason: 'operator',
    },
    'another attempt follows',
  );
  return parkNext(held, attempt, 0);
}

async function conclude(held: Held, attempt: Attempt, decision: Decision): Promise<OutcomeDocument> {
  const { ctx, job, facts } = held;
  if (!shouldRetry(attempt, facts, decision)) {
    const document = await publish(ctx, attempt, facts, decision, job.attemptsMade);
    return finish(ctx, job, document, facts.onEmpty);
  }
  await ctx.store.nextAttempt(attempt, held.lock, totalUsage(attempt), null, ctx.timing.claimAfterMs);
  ctx.metrics.retry(facts.server, decision.outcome);
  const ids = { scrapeId: attempt.scrape, runId: attempt.runId ?? undefined, server: facts.server };
  ctx.log.info(
    {
      event: 'scrape.retried',
      ...ids,
      attempt: attempt.n,
      reason: decision.outcome,
      message: decision.message,
    },
    'another attempt follows',
  );
  return parkNext(held, attempt, retryDelay(attempt.n, ctx.config.retry.backoffMs));
}

/** Released without a decision: its child was removed, or a crash came between hash and hand-on. */
async function resume(held: Held, attempt: Attempt): Promise<OutcomeDocument> {
  const { ctx, job, facts } = held;
  if (attempt.phase === 'queued' && attempt.cancelledAt !== null) {
    await ctx.queues.removeStage('start', facts.server, attempt.scrape, attempt.n);
    const start = stageJobId(attempt.scrape, attempt.n, 'start');
    if ((await ctx.queues.stage('start', facts.server).getJob(start)) === undefined) {
      return refuseAs(ctx, job, facts, attempt, 'cancelled', cancelledMessage(attempt));
    }
  }
  return park(held, attempt, 0);
}

async function parkNext(held: Held, attempt: Attempt, delayMs: number): Promise<OutcomeDocument> {
  return park(held, { ...attempt, n: attempt.n + 1, phase: 'queued' }, delayMs);
}

/** Adds the child the attempt's phase needs and waits for it. The hash, not BullMQ's children, says which. */
async function park(held: Held, attempt: Attempt, delayMs: number): Promise<OutcomeDocument> {
  const { ctx, job, token, facts } = held;
  const own = job.opts.priority;
  // A parent with a priority would resume behind the whole backlog.
  if (own !== undefined && own > 0) await job.changePriority({ priority: 0 });
  const stage = stageOf(attempt);
  const priority = stage === 'start' ? { priority: startPriorityOf(readPriority(job), own) } : {};
  await ctx.queues.addStage(stage, attempt, facts.server, { delayMs, ...priority });
  if (await job.moveToWaitingChildren(token)) throw new WaitingChildrenError();
  return take(ctx, job, token);
}

function stageOf(attempt: Attempt): Stage {
  switch (attempt.phase) {
    case 'running':
      return 'poll';
    case 'aborting':
      return 'abort';
    case 'reading':
      return 'pages';
    // With an intent in it, the start job's worker sends it on to the search.
    case 'queued':
    case 'starting':
    case 'decided':
    case 'done':
      return 'start';
    default:
      return attempt.phase satisfies never;
  }
}

function readPriority(job: Job): number | undefined {
  const priority = (job.data as { priority?: unknown }).priority;
  return typeof priority === 'number' ? priority : undefined;
}

/** The producer's `removeOnComplete` must not shorten retention (design A2). */
function keepForRetention(ctx: WorkerContext, job: Job): void {
  Object.assign(job.opts, retention(ctx));
}

function retention(ctx: WorkerContext): Pick<WorkerOptions, 'removeOnComplete' | 'removeOnFail'> {
  const { settledMs, failedMs, max } = ctx.config.keep;
  return {
    removeOnComplete: { age: Math.ceil(settledMs / 1000), count: max },
    removeOnFail: { age: Math.ceil(failedMs / 1000), count: max },
  };
}
