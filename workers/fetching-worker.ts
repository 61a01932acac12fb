import { type Processor, Worker, type WorkerOptions } from 'bullmq';
import { publicQueue } from '../src/queue/names.js';
import { readMetadata } from '../src/tracing/metadata.js';
import type { WorkerContext } from './context.js';

/**
 * A BullMQ worker that reports each fetch (liveness), logs its errors once each, and counts stalled jobs. `moveToActive`
 * is where BullMQ asks Redis for work.
 */
export class FetchingWorker extends Worker {
  constructor(name: string, processor: Processor, options: WorkerOptions, ctx: WorkerContext) {
    super(name, processor, options);
    const inner = this as unknown as { moveToActive(token: string, name?: string): Promise<unknown> };
    const moveToActive = inner.moveToActive.bind(this);
    inner.moveToActive = async (token, workerName) => {
      const job = await moveToActive(token, workerName);
      ctx.liveness.beat(name);
      return job;
    };
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
