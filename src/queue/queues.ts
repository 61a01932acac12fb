import { type Job, type JobsOptions, Queue, type Telemetry } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Keys, Stage } from './names.js';
import { publicQueue, stageJobId, stageQueue, stages } from './names.js';

/** BullMQ's code for "the parent job is gone". */
const parentMissing = -5;
/** BullMQ's events of public jobs: producers that wait for the end of one follow them. */
export const publicEventBound = 10_000;

/** The five kinds of queues, on one shared connection. Jobs of stage queues carry nothing but their id. */
export class Queues {
  readonly public: Queue;
  private readonly byName = new Map<string, Queue>();

  constructor(
    private readonly connection: Redis,
    private readonly keys: Keys,
    servers: readonly string[],
    private readonly onError: (error: unknown) => void,
    private readonly telemetry?: Telemetry | undefined,
  ) {
    this.public = this.open(publicQueue);
    for (const server of servers) {
      for (const stage of stages) {
        const name = stageQueue(stage, server);
        this.byName.set(name, this.open(name));
      }
    }
  }

  /** The queue of a stage; throws on a server that is not configured (a fault of the caller). */
  stage(stage: Stage, server: string): Queue {
    const queue = this.byName.get(stageQueue(stage, server));
    if (queue === undefined) throw new Error(`no queues for server ${server}`);
    return queue;
  }

  get all(): Queue[] {
    return [this.public, ...this.byName.values()];
  }

  /**
   * Adds the next stage's job as a child of the public job. Adding it again does nothing. Without a parent (its producer
   * removed it) the job is added on its own, so that the run is still seen to its end.
   */
  async addStage(
    stage: Stage,
    attempt: { readonly scrape: string; readonly jobId: string; readonly n: number },
    server: string,
    options: { readonly delayMs?: number; readonly priority?: number } = {},
  ): Promise<void> {
    const queue = this.stage(stage, server);
    const common: JobsOptions = {
      jobId: stageJobId(attempt.scrape, attempt.n, stage),
      ...(options.delayMs !== undefined && options.delayMs > 0 ? { delay: Math.ceil(options.delayMs) } : {}),
      ...(options.priority !== undefined ? { priority: options.priority } : {}),
    };
    try {
      await queue.add(
        stage,
        {},
        {
          ...common,
          parent: { id: attempt.jobId, queue: this.keys.queue(publicQueue) },
          ignoreDependencyOnFailure: true,
        },
      );
    } catch (error) {
      if ((error as { code?: unknown }).code !== parentMissing) throw error;
      await queue.add(stage, {}, common);
    }
  }

  /** An abort of a run that belongs to no attempt: found by the reaper, or the second run of one start. */
  async addOrphan(server: string, runId: string): Promise<void> {
    await this.stage('abort', server).add('orphan', { runId }, { jobId: `orphan-${runId}` });
  }

  /** Removes a stage's job unless a worker has it; its parent resumes when it was the last child. */
  async removeStage(stage: Stage, server: string, scrape: string, attempt: number): Promise<boolean> {
    return (await this.stage(stage, server).remove(stageJobId(scrape, attempt, stage))) === 1;
  }

  /** The raw data of a public job, as its producer wrote it; null when the job is gone. */
  async publicData(jobId: string): Promise<string | null> {
    return this.connection.hget(this.keys.job(publicQueue, jobId), 'data');
  }

  async publicExists(jobId: string): Promise<boolean> {
    return (await this.connection.hexists(this.keys.job(publicQueue, jobId), 'timestamp')) === 1;
  }

  /** A public job that its producer delayed falls due now; nothing happens when it is not delayed. */
  async promotePublic(jobId: string): Promise<void> {
    const job = await this.publicJob(jobId);
    if (job === undefined || !(await job.isDelayed())) return;
    // It may fall due by itself in between.
    await job.promote().catch(() => {});
  }

  async publicJob(jobId: string): Promise<Job | undefined> {
    return this.public.getJob(jobId);
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.all.map((queue) => queue.close()));
  }

  private open(name: string): Queue {
    const queue = new Queue(name, {
      connection: this.connection,
      prefix: this.keys.prefix,
      skipVersionCheck: true,
      ...(this.telemetry === undefined ? {} : { telemetry: this.telemetry }),
      streams: { events: { maxLen: name === publicQueue ? publicEventBound : 100 } },
    });
    queue.on('error', this.onError);
    return queue;
  }
}
