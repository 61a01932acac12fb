import type { Job, Worker } from 'bullmq';
import { DelayedError } from 'bullmq';
import type { ServerConfig } from '../src/config.js';
import { stageQueue } from '../src/queue/names.js';
import { afterAbort } from '../src/run/poll.js';
import { backoff, nextAbortAt } from '../src/run/schedule.js';
import type { WorkerContext } from './context.js';
import { FetchingWorker } from './fetching-worker.js';
import { cancelReading } from './pages.js';
import { carryOut, seen } from './poll.js';
import { complete, cutOff, type Next, runStep, type Step, workerOptions } from './stage.js';

/** An orphan that the server never lets us end is given up after this many tries, about a day. */
const orphanTries = 3_000;
/** An orphan that the server does not know is looked for this often: a token that fails can look the same for a while. */
const unknownTries = 5;
/** How often the bill of an aborted run is asked for before the outcome does without it. */
const billTries = 5;

/**
 * Takes an abort job, aborts the run, and comes back until its status is final; then pages (deadline) or the outcome
 * (cancel) follow. Orphans, runs without an attempt, are aborted the same way and leave nothing.
 */
export function createAbortWorker(ctx: WorkerContext, server: ServerConfig): Worker {
  return new FetchingWorker(
    stageQueue('abort', server.name),
    (job, token) =>
      job.name === 'orphan'
        ? abortOrphan(ctx, server.name, job, token ?? '')
        : runStep(ctx, 'abort', server.name, job, token ?? '', (step) => abort(ctx, step)),
    workerOptions(ctx, 32, 1_000_000),
    ctx,
  );
}

async function abort(ctx: WorkerContext, step: Step): Promise<Next> {
  const { attempt } = step;
  if (attempt.phase === 'reading' && attempt.cancelledAt !== null && attempt.spec !== null) {
    return cancelReading(ctx, step, attempt.spec);
  }
  if (attempt.phase !== 'running' && attempt.phase !== 'aborting') return complete;
  if (attempt.runId === null || attempt.spec === null) return complete;
  const { port } = ctx.server(step.server);
  const about = { scrapeId: attempt.scrape };
  const look = { waitSecs: 0, signal: ctx.stopping, about };
  // ABORTING: the call was heard, only its end is missing.
  const heard = attempt.status === 'ABORTING' && attempt.abortTries % 5 !== 0;
  const result = heard
    ? await port.poll(attempt.runId, look)
    : await port.abort(attempt.runId, ctx.stopping, about);
  if (cutOff(ctx, result)) return { do: 'snooze', until: ctx.now() };
  const after = afterAbort(attempt, attempt.spec, result, ctx.now());
  const counted = {
    abortTries: attempt.abortTries + 1,
    stallBase: step.stallBase,
    looks: seen(attempt, result, ctx.now()),
  };
  // Usage is absent from an abort's answer; one more look brings the bill.
  if ((after.do === 'read' || after.do === 'settle') && after.sighting !== null && !heard) {
    const looked = await port.poll(attempt.runId, look);
    if (looked.ok && looked.value.final) {
      return carryOut(ctx, step, afterAbort(attempt, attempt.spec, looked, ctx.now()), counted);
    }
    if (counted.abortTries < billTries) {
      const until = nextAbortAt(ctx.now(), counted.abortTries);
      return carryOut(ctx, step, { do: 'wait', until, sighting: null }, counted);
    }
  }
  return carryOut(ctx, step, after, counted);
}

async function abortOrphan(ctx: WorkerContext, server: string, job: Job, token: string): Promise<void> {
  const runId = (job.data as { runId?: unknown }).runId;
  if (typeof runId !== 'string') return;
  const { port } = ctx.server(server);
  const result = await port.abort(runId);
  const log = ctx.log.child({ runId, server });
  if (result.ok && result.value.final) {
    ctx.metrics.orphanRun(server, 'aborted');
    log.warn({ event: 'orphan.aborted', status: result.value.status }, 'a run without an owner was ended');
    return;
  }
  const tries = job.attemptsStarted;
  if (!result.ok && result.failure.notFound && tries >= unknownTries) {
    log.warn({ event: 'orphan.unknown', tries }, 'the server does not know this run without an owner');
    return;
  }
  if (tries > orphanTries) {
    ctx.metrics.orphanRun(server, 'given_up');
    log.error(
      { event: 'orphan.given_up', tries },
      'a run without an owner could not be ended; look at it on the server',
    );
    return;
  }
  await job.moveToDelayed(ctx.now() + backoff(1_000, tries, 30_000), token);
  throw new DelayedError();
}
