import { DelayedError, type Job, type Processor, type Span, Worker, type WorkerOptions } from 'bullmq';
import { publicQueue } from '../src/queue/names.js';
import { readMetadata } from '../src/tracing/metadata.js';
import type { WorkerContext } from './context.js';
import { hasPendingChildren, isDecision, isFlow, isOutOfHand } from './job-errors.js';

/** A job whose end was refused is taken again after this long. */
const againMs = 1_000;

/**
 * A BullMQ worker that reports each fetch (liveness), logs its errors once each, counts stalled jobs, and lets a job fail by
 * our decision alone. `moveToActive` is where BullMQ asks Redis for work.
 */
export class FetchingWorker extends Worker {
  constructor(name: string, processor: Processor, options: WorkerOptions, ctx: WorkerContext) {
    super(name, processor, options);
    const inner = this as unknown as Internals;
    const moveToActive = inner.moveToActive.bind(this);
    inner.moveToActive = async (token, workerName) => {
      const job = await moveToActive(token, workerName);
      ctx.liveness.beat(name);
      return job;
    };
    // One that stalled too often would fail with words of BullMQ's; its processor ends it, with a document.
    if (name === publicQueue) inner.getUnrecoverableErrorMessage = () => undefined;
    if (ctx.tracing.bullmq !== undefined && name === publicQueue) this.traceAlways(ctx);
    this.on('active', () => ctx.liveness.beat(name));
    // A worker whose hands are full asks for nothing, and its locks show that it and Redis are well.
    this.on('locksRenewed', () => ctx.liveness.beat(name));
    this.on('stalled', (jobId) => {
      ctx.metrics.stalledJob(name);
      ctx.log
        .module('queue')
        .warn({ event: 'job.stalled', queue: name, jobId }, 'a worker lost this job; it is taken up again');
    });
    this.on('error', (error) => {
      ctx.log
        .module('queue')
        .warn({ event: 'worker.error', queue: name, message: error.message }, 'worker error');
    });
  }

  /**
   * BullMQ fails a job with whatever was thrown, also when what was thrown is that Redis refused to complete it: a scrape
   * that succeeded would be told of as failed. A job fails by a decision only; after anything else it is taken again, and
   * comes to the same end. Nothing is done with a job that is out of our hands: its lock would be refused.
   */
  protected override async handleFailed(
    error: Error,
    job: Job,
    token: string,
    fetchNext?: () => boolean,
    span?: Span,
  ): Promise<Job> {
    if (isFlow(error) || isDecision(error)) return super.handleFailed(error, job, token, fetchNext, span);
    if (!isOutOfHand(error)) await this.takeAgain(error, job, token);
    return super.handleFailed(new DelayedError(), job, token, fetchNext, span);
  }

  private async takeAgain(error: Error, job: Job, token: string): Promise<void> {
    // A worker that woke up late has added a child: nothing comes of it, and the job is released when it has ended.
    if (hasPendingChildren(error) && (await job.moveToWaitingChildren(token))) return;
    await job.moveToDelayed(Date.now() + againMs, token);
  }

  /** A public job without a trace context that can be read gets one that is its own, so that its scrape is one trace. */
  private traceAlways(ctx: WorkerContext): void {
    const processJob = this.processJob.bind(this);
    this.processJob = (job, token, fetchNext) => {
      const { telemetry } = job.opts;
      if (readMetadata(telemetry?.metadata) === null) {
        const metadata = ctx.tracing.contextOf({
          id: job.id as string,
          timestamp: job.timestamp,
          taken: job.attemptsStarted,
        });
        job.opts.telemetry = { ...telemetry, ...(metadata === undefined ? {} : { metadata }) };
      }
      return processJob(job, token, fetchNext);
    };
  }
}

/** What BullMQ's types keep to itself. */
interface Internals {
  moveToActive(token: string, name?: string): Promise<unknown>;
  getUnrecoverableErrorMessage(job: Job): string | undefined;
}
