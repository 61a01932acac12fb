import {
  DelayedError,
  type Job,
  UnrecoverableError,
  WaitingError,
  type Worker,
  type WorkerOptions,
} from 'bullmq';
import { TrawlError } from '../src/errors.js';
import type { CallAbout } from '../src/mcp/port.js';
import type { Lock } from '../src/queue/attempt-store.js';
import { parseStageJobId, type Stage, stageQueue } from '../src/queue/names.js';
import type { Attempt, Decision } from '../src/run/attempt.js';
import { decide } from '../src/run/outcome.js';
import { backoff } from '../src/run/schedule.js';
import { SinkHeldError } from '../src/sinks/contract.js';
import type { WorkerContext } from './context.js';
import { FetchingWorker } from './fetching-worker.js';
import { publish, subjectOf } from './publish.js';
import { takeTurn } from './suspects.js';

/** Whom a call is for, in the log. */
export const aboutOf = ({ scrape, runId }: Attempt): CallAbout => ({
  scrapeId: scrape,
  ...(runId === null ? {} : { runId }),
});

/** What a worker's step ends with; `runStep` is the one place that says it to BullMQ. */
export type Next =
  | { readonly do: 'complete' }
  /** The same job again at `until`; no attempt is spent. State was saved before. */
  | { readonly do: 'snooze'; readonly until: number }
  /** Back to its place in the backlog, as if it had not been taken. */
  | { readonly do: 'put_back' };

export const complete: Next = { do: 'complete' };

/** One job of one attempt, in a worker's hands. */
export interface Step {
  readonly attempt: Attempt;
  readonly server: string;
  readonly stage: Stage;
  readonly job: Job;
  readonly lock: Lock;
  readonly now: number;
  /** `<stage>:<crashes>`, to be saved whenever the attempt gets on. */
  readonly stallBase: string | null;
}

/** Faults of ours in a row on one attempt before it is settled as `errored`. */
const faultsAllowed = 8;

/** Lock and stall settings of all workers (design B1). Poison is decided by us, so BullMQ's own count is high. */
export function workerOptions(
  ctx: WorkerContext,
  concurrency: number,
  maxStalledCount: number,
): WorkerOptions {
  return {
    connection: ctx.redis,
    prefix: ctx.config.prefix,
    concurrency,
    autorun: false,
    lockDuration: ctx.timing.lockMs,
    stalledInterval: ctx.timing.stalledEveryMs,
    maxStalledCount,
    drainDelay: 5,
    skipVersionCheck: true,
    // Here and not in each job's options, which would cost 64 bytes a waiting scrape. The public worker overrides it.
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
    ...(ctx.tracing.bullmq === undefined ? {} : { telemetry: ctx.tracing.bullmq }),
  };
}

export function createStageWorker(
  ctx: WorkerContext,
  stage: Stage,
  server: string,
  concurrency: number,
  handle: (step: Step) => Promise<Next>,
): Worker {
  const maxStalled = stage === 'poll' || stage === 'abort' ? 1_000_000 : 20;
  return new FetchingWorker(
    stageQueue(stage, server),
    (job, token) => runStep(ctx, stage, server, job, token ?? '', handle),
    workerOptions(ctx, concurrency, maxStalled),
    ctx,
  );
}

/** Takes the attempt, runs the step, tells BullMQ. */
export async function runStep(
  ctx: WorkerContext,
  stage: Stage,
  server: string,
  job: Job,
  token: string,
  handle: (step: Step) => Promise<Next>,
): Promise<void> {
  const id = parseStageJobId(job.id ?? '');
  if (id === null) throw new UnrecoverableError(`not a job of ours: ${stage}`);
  const lock = { key: ctx.keys.lock(stageQueue(stage, server), job.id as string), token };
  let next: Next;
  let attempt: Attempt | null = null;
  try {
    attempt = (await ctx.store.load(id.scrape)).attempt;
    if (attempt === null || attempt.n !== id.attempt) return;
    ctx.tracing.note({
      scrapeId: id.scrape,
      runId: attempt.runId,
      server,
      tool: attempt.spec?.tool,
      attempt: attempt.n,
    });
    if (attempt.phase === 'decided') {
      await abortErrored(ctx, attempt, server);
      return await publishAlone(ctx, attempt, server);
    }
    const crashes = job.stalledCounter ?? 0;
    const stallBase = crashes > 0 ? `${stage}:${crashes}` : null;
    const step: Step = { attempt, server, stage, job, lock, now: ctx.now(), stallBase };
    next = await handleUnlessPoison(ctx, step, crashes, handle);
  } catch (error) {
    next = await afterFault(ctx, stage, server, job, lock, attempt, error);
  }
  ctx.tracing.note({ next: next.do });
  await tellBullMQ(job, token, next);
}

async function tellBullMQ(job: Job, token: string, next: Next): Promise<void> {
  switch (next.do) {
    case 'complete':
      return;
    case 'snooze':
      await job.moveToDelayed(next.until, token);
      throw new DelayedError();
    case 'put_back':
      await job.moveToWait(token);
      throw new WaitingError();
    default:
      next satisfies never;
  }
}

async function handleUnlessPoison(
  ctx: WorkerContext,
  step: Step,
  crashes: number,
  handle: (step: Step) => Promise<Next>,
): Promise<Next> {
  const [baseStage, base] = step.attempt.stallBase?.split(':') ?? [];
  const inARow = crashes - (baseStage === step.stage ? Number(base) : 0);
  const queue = stageQueue(step.stage, step.server);
  const job = { id: step.job.id as string, token: step.lock.token };
  const turn = await takeTurn(
    ctx,
    queue,
    job,
    inARow,
    step.attempt.spec?.deadlineMs ?? ctx.config.deadlineMs,
  );
  if (turn.do === 'give_up') return poisoned(ctx, step, crashes);
  if (turn.do === 'wait') return { do: 'snooze', until: step.now + turn.ms };
  try {
    return await handle(step);
  } finally {
    await turn.done();
  }
}

async function poisoned(ctx: WorkerContext, step: Step, crashes: number): Promise<Next> {
  const message = `This scrape's ${step.stage} step crashed its worker ${crashes} times; look for the crash in the logs before you retry it.`;
  return giveUp(ctx, step, message);
}

/** Ends an attempt by a fault of ours; a run under way is aborted first, by the abort worker's next step. */
async function giveUp(ctx: WorkerContext, step: Step, message: string): Promise<Next> {
  return settle(ctx, step, decide('errored', message, step.now, step.attempt.warnings));
}

/** The call was given up because this process stops: its failure says nothing of the server. */
export function cutOff(ctx: WorkerContext, result: { readonly ok: boolean }): boolean {
  return ctx.stopping.aborted && !result.ok;
}

/** Saves a decision and ends the step; the public job, released by that, publishes it. */
export async function settle(ctx: WorkerContext, step: Step, decision: Decision): Promise<Next> {
  const { attempt, server } = step;
  ctx.tracing.note({ outcome: decision.outcome });
  const written = await ctx.store.advance(
    attempt,
    step.lock,
    { lowest: 'queued', highest: 'reading' },
    'decided',
    { decision, intentAt: null, faults: null },
  );
  if (written === 'stale') return complete;
  await abortErrored(ctx, { ...attempt, decision }, server);
  // A run whose items are read has given its slot back already.
  if (attempt.phase !== 'reading') await ctx.server(server).slots.release(attempt.scrape);
  await publishAlone(ctx, { ...attempt, phase: 'decided', decision }, server);
  return complete;
}

/** A run whose scrape was given up is nobody's any more. Said again after a crash it changes nothing. */
async function abortErrored(ctx: WorkerContext, attempt: Attempt, server: string): Promise<void> {
  const { decision, runId, endedAt } = attempt;
  if (decision?.outcome === 'errored' && runId !== null && endedAt === null) {
    await ctx.queues.addOrphan(server, runId);
  }
}

/** When the producer removed the public job, nobody else would publish what was decided. */
export async function publishAlone(ctx: WorkerContext, attempt: Attempt, server: string): Promise<void> {
  if (attempt.decision === null || (await ctx.queues.publicExists(attempt.jobId))) return;
  await publish(ctx, attempt, subjectOf(attempt, server), attempt.decision, 0);
}

async function afterFault(
  ctx: WorkerContext,
  stage: Stage,
  server: string,
  job: Job,
  lock: Lock,
  attempt: Attempt | null,
  error: unknown,
): Promise<Next> {
  const now = ctx.now();
  const log = ctx.log.child({ scrapeId: attempt?.scrape, runId: attempt?.runId ?? undefined, server, stage });
  if (error instanceof TrawlError && error.code === 'lock_lost') {
    log.warn({ event: 'lock.lost' }, 'another worker has this job; stopped without writing');
    throw error;
  }
  if (error instanceof TrawlError && error.code === 'attempt_superseded') {
    log.warn({ event: 'attempt.superseded' }, 'a later attempt has begun; stopped');
    return complete;
  }
  if (error instanceof SinkHeldError) {
    log.warn(
      { event: 'sink.held', sink: ctx.sink.name, reason: error.reason, message: error.message },
      'the sink refuses writes; held',
    );
    ctx.metrics.sinkError(ctx.sink.name);
    ctx.metrics.sinkHeld(ctx.sink.name, true);
    return { do: 'snooze', until: now + 5_000 };
  }
  log.error({ event: 'step.fault', err: error }, 'a step failed by a fault of ours');
  // What was decided stays so: only its publishing failed, which is tried until it succeeds.
  if (attempt === null || attempt.phase === 'decided') return { do: 'snooze', until: now + 5_000 };
  const faults = attempt.faults + 1;
  const step: Step = { attempt, server, stage, job, lock, now, stallBase: null };
  if (faults > faultsAllowed) {
    const reason = error instanceof Error ? error.message.slice(0, 200) : 'unknown';
    return giveUp(
      ctx,
      step,
      `Trawl failed ${faults} times in a row at this scrape's ${stage} step: ${reason}`,
    );
  }
  await ctx.store.advance(attempt, lock, { lowest: 'queued', highest: 'reading' }, null, { faults });
  return { do: 'snooze', until: now + backoff(1_000, faults, 60_000) };
}
