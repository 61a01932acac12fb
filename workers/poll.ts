import type { Worker } from 'bullmq';
import type { ServerConfig } from '../src/config.js';
import type { CallResult, RunView } from '../src/mcp/port.js';
import type { AttemptPatch } from '../src/queue/attempt-store.js';
import type { AbortReason, Attempt } from '../src/run/attempt.js';
import { addLook } from '../src/run/looks.js';
import { nextSlice, verifiableFrom } from '../src/run/pages.js';
import { type AfterLook, afterPoll, beforePoll, type Sighting } from '../src/run/poll.js';
import type { WorkerContext } from './context.js';
import { search } from './reconcile.js';
import { heldOnTheWay } from './refusals.js';
import { complete, createStageWorker, cutOff, type Next, type Step, settle } from './stage.js';

/** Takes a poll job when it falls due, asks for the run's status, and snoozes, or hands on to pages or abort. */
export function createPollWorker(ctx: WorkerContext, server: ServerConfig): Worker {
  const concurrency = Math.max(8, Math.min(256, Math.ceil(server.limits.requestsPerSecond * 2)));
  return createStageWorker(ctx, 'poll', server.name, concurrency, (step) => poll(ctx, step));
}

async function poll(ctx: WorkerContext, step: Step): Promise<Next> {
  const { attempt } = step;
  switch (beforePoll(attempt)) {
    case 'nothing':
      return complete;
    case 'search':
      return search(ctx, step);
    case 'abort':
      return toAbort(ctx, step, attempt.abort ?? 'cancel', {});
    case 'hand_on':
      await toPages(ctx, step, attempt);
      return complete;
    case 'poll':
      break;
  }
  if (attempt.deadlineAt !== null) {
    const due = attempt.pollAt ?? step.job.timestamp + ctx.config.poll.intervalMs;
    ctx.metrics.pollLateness(step.server, Math.max(0, step.now - due) / 1000);
  }
  const { port } = ctx.server(step.server);
  const result = await port.poll(attempt.runId as string, {
    waitSecs: waitSecs(ctx, step),
    signal: ctx.stopping,
    about: { scrapeId: attempt.scrape },
  });
  if (cutOff(ctx, result)) return { do: 'snooze', until: ctx.now() };
  const after = afterPoll(attempt, result, ctx.now(), ctx.config.poll.intervalMs);
  return carryOut(ctx, step, after, {
    polls: attempt.polls + 1,
    pollFailures: result.ok ? null : attempt.pollFailures + 1,
    looks: seen(attempt, result, ctx.now()),
    stallBase: step.stallBase,
  });
}

/** The attempt's looks with this one added, for its timeline. */
export function seen(attempt: Attempt, result: CallResult<RunView>, at: number): string {
  const look = result.ok
    ? { at, status: result.value.status, items: result.value.itemCount }
    : { at, status: 'UNANSWERED', items: null };
  return addLook(attempt.looks, look);
}

/** How long the server may hold a poll: not past the deadline, when the run has to be aborted. */
function waitSecs(ctx: WorkerContext, { attempt, now }: Step): number {
  const left = Math.max(0, ((attempt.deadlineAt ?? Number.POSITIVE_INFINITY) - now) / 1000);
  return Math.min(ctx.config.poll.waitSecs, Math.floor(left));
}

/** Carries out what a look at a run led to; shared by poll and abort. */
export async function carryOut(
  ctx: WorkerContext,
  step: Step,
  after: AfterLook,
  counted: AttemptPatch,
): Promise<Next> {
  const { attempt } = step;
  switch (after.do) {
    case 'wait':
      return snooze(ctx, step, after.until, { ...counted, ...patchOf(after.sighting) });
    case 'doubt':
      return snooze(ctx, step, after.until, {
        ...counted,
        unknownSince: attempt.unknownSince ?? ctx.now(),
        unknownTimes: attempt.unknownTimes + 1,
      });
    case 'hold':
      await heldOnTheWay(ctx, step.server, after, step.now);
      return snooze(ctx, step, after.until, counted);
    case 'abort':
      return toAbort(ctx, step, after.reason, { ...counted, ...patchOf(after.sighting) });
    case 'read': {
      const slice = nextSlice({ ...attempt, ...after.sighting }, ctx.config.results.pageBytes);
      const patch = { ...counted, ...patchOf(after.sighting), slice };
      const from = { lowest: 'running', highest: 'aborting' } as const;
      const written = await ctx.store.advance(attempt, step.lock, from, 'reading', patch);
      if (written === 'stale') return complete;
      await ctx.server(step.server).slots.release(attempt.scrape);
      observeRun(ctx, attempt, after.sighting);
      await toPages(ctx, step, { ...attempt, ...after.sighting });
      return complete;
    }
    case 'settle':
      if (after.sighting !== null) {
        const from = { lowest: 'running', highest: 'aborting' } as const;
        const written = await ctx.store.advance(attempt, step.lock, from, null, {
          ...counted,
          ...patchOf(after.sighting),
        });
        if (written === 'stale') return complete;
      }
      return settle(ctx, step, after.decision);
    default:
      return after satisfies never;
  }
}

/** State first, then the snooze: a flag set in between waits for the canceller's second look. */
async function snooze(ctx: WorkerContext, step: Step, until: number, patch: AttemptPatch): Promise<Next> {
  const from = { lowest: 'running', highest: 'aborting' } as const;
  const saved = { ...patch, faults: null, ...(step.stage === 'poll' ? { pollAt: until } : {}) };
  const written = await ctx.store.advance(step.attempt, step.lock, from, null, saved);
  if (written === 'stale') return complete;
  if (step.stage !== 'poll') return { do: 'snooze', until };
  const { attempt } = await ctx.store.load(step.attempt.scrape);
  if (attempt !== null && attempt.cancelledAt !== null) return toAbort(ctx, step, 'cancel', {});
  return { do: 'snooze', until };
}

async function toAbort(
  ctx: WorkerContext,
  step: Step,
  abort: AbortReason,
  patch: AttemptPatch,
): Promise<Next> {
  const from = { lowest: 'running', highest: 'aborting' } as const;
  const written = await ctx.store.advance(step.attempt, step.lock, from, 'aborting', { ...patch, abort });
  if (written === 'stale') return complete;
  await ctx.queues.addStage('abort', step.attempt, step.server);
  return complete;
}

/** The pages job is due when a read can prove the end, unless whole pages are there to be read before. */
async function toPages(ctx: WorkerContext, step: Step, attempt: Attempt): Promise<void> {
  const wait = verifiableFrom(attempt) - ctx.now();
  const early = attempt.itemCount !== null && attempt.itemCount > 256;
  await ctx.queues.addStage('pages', attempt, step.server, { delayMs: early ? 0 : Math.max(0, wait) });
}

function observeRun(ctx: WorkerContext, attempt: Attempt, sighting: Sighting): void {
  if (attempt.startedAt === null || sighting.endedAt === null || attempt.spec === null) return;
  ctx.metrics.runDuration(
    attempt.spec.server,
    attempt.spec.tool,
    (sighting.endedAt - attempt.startedAt) / 1000,
  );
}

function patchOf(sighting: Sighting | null): AttemptPatch {
  if (sighting === null) return {};
  return {
    ...sighting,
    elsewhere: sighting.elsewhere.length === 0 ? null : sighting.elsewhere,
    unknownSince: null,
    unknownTimes: null,
  };
}
