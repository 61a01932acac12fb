import type { AttemptPatch } from '../src/queue/attempt-store.js';
import type { Attempt } from '../src/run/attempt.js';
import { afterSearch, type Search, sameInput } from '../src/run/reconcile.js';
import type { WorkerContext } from './context.js';
import { handOn, readStartJob } from './hand-on.js';
import { liftIfTaken } from './probes.js';
import { subjectOf } from './publish.js';
import { heldOnTheWay } from './refusals.js';
import { complete, type Next, type Step, settle } from './stage.js';

/** Another scrape's search looks through the list now; it is done in a few seconds. */
const busyMs = 1_000;
/** The server's clock may be off by this much against ours. */
const clockSlackMs = 120_000;

/**
 * The answer of a start was lost: its run is looked for from the poll queue, which needs no run slot (a gated job that
 * waits for the slot it holds itself would wait for ever). The slot counts as a run's until it is known that there is none.
 */
export async function toSearch(ctx: WorkerContext, step: Step): Promise<Next> {
  const { attempt, server } = step;
  const from = { lowest: 'starting', highest: 'starting' } as const;
  const patch = { ambiguousSince: attempt.ambiguousSince ?? ctx.now(), stallBase: step.stallBase };
  if ((await ctx.store.advance(attempt, step.lock, from, null, patch)) === 'stale') {
    // Its run is known after all: a progress notification named it before the answer was lost.
    const { attempt: now } = await ctx.store.load(attempt.scrape);
    if (now?.n === attempt.n && now.phase === 'running') await handOn(ctx, step, now.spec?.tool ?? '');
    return complete;
  }
  await ctx.server(server).slots.toRun(attempt.scrape);
  await ctx.queues.addStage('poll', attempt, server, { delayMs: 500 });
  return complete;
}

/** One look for the run of an attempt whose start was never answered. */
export async function search(ctx: WorkerContext, step: Step): Promise<Next> {
  const { attempt, server } = step;
  const { port } = ctx.server(server);
  const asked = attempt.asked ?? (await readStartJob(ctx, attempt)).scrape;
  const described = await port.describe({ signal: ctx.stopping });
  const canList = !described.ok || described.value.canList;
  const found = described.ok && canList && asked !== null ? await lookUp(ctx, step, asked) : null;
  if (found === 'busy') return { do: 'snooze', until: ctx.now() + busyMs };
  const after = afterSearch(attempt, found, canList, ctx.now(), ctx.timing);
  switch (after.do) {
    case 'adopt': {
      const saved = await ctx.store.saveRun(
        attempt,
        ctx.server(server).account,
        attempt.intentAt,
        after.runId,
        { repliedAt: ctx.now() },
        subjectOf(attempt, server),
      );
      // Another scrape was quicker to claim it: look on.
      if (saved === 'claimed') {
        ctx.walks.drop(server, after.runId);
        return { do: 'snooze', until: ctx.now() + 1_000 };
      }
      // The attempt has its run, or has ended: whatever it needs now, the next take of this job sees.
      if (saved === 'orphan') return { do: 'snooze', until: ctx.now() };
      ctx.metrics.ambiguousStart(server, 'adopted');
      ctx.log.warn(
        { event: 'start.adopted', scrapeId: attempt.scrape, runId: after.runId, server },
        'the run of an unanswered start was found and adopted',
      );
      await handOn(ctx, step, attempt.spec?.tool ?? '');
      await liftIfTaken(ctx, server, attempt.intentAt);
      return { do: 'snooze', until: ctx.now() };
    }
    case 'wait': {
      // A look that came to its end is progress: locks lost before it are no sign of a poisonous job.
      const from = { lowest: 'starting', highest: 'starting' } as const;
      const saved =
        (step.stallBase === attempt.stallBase && attempt.faults === 0) ||
        (await ctx.store.advance(attempt, step.lock, from, null, {
          stallBase: step.stallBase,
          faults: null,
        })) === 'done';
      return saved ? { do: 'snooze', until: after.until } : complete;
    }
    case 'start_again': {
      const patch: AttemptPatch = {
        intentAt: null,
        ambiguousSince: null,
        asked: null,
        startedAt: null,
        deadlineAt: null,
      };
      const from = { lowest: 'starting', highest: 'starting' } as const;
      if ((await ctx.store.advance(attempt, step.lock, from, null, patch)) === 'stale') return complete;
      ctx.metrics.ambiguousStart(server, 'restarted');
      ctx.log.warn(
        { event: 'start.repeated', scrapeId: attempt.scrape, server },
        'the start had no effect; made again',
      );
      await ctx.server(server).slots.release(attempt.scrape);
      await ctx.queues.addStage('start', attempt, server, { priority: 1 });
      return complete;
    }
    case 'settle':
      ctx.metrics.ambiguousStart(server, 'unknown');
      ctx.log.warn(
        { event: 'start.unknown', scrapeId: attempt.scrape, server },
        'the run of an unanswered start was not found; nothing is started again',
      );
      return settle(ctx, step, after.decision);
    default:
      return after satisfies never;
  }
}

/**
 * Among the runs that nobody has claimed and that began about when ours would have, the one of our Actor whose INPUT is
 * ours. Where the server does not say the Actor the run is taken too: not taking it could pay twice.
 *
 * @returns `busy` when another looks through the list now, null when something could not be read
 */
async function lookUp(
  ctx: WorkerContext,
  step: Step,
  asked: NonNullable<Attempt['asked']>,
): Promise<Search | 'busy' | null> {
  const { port } = ctx.server(step.server);
  const intentAt = step.attempt.intentAt ?? ctx.now();
  const from = intentAt - clockSlackMs;
  const until = intentAt + ctx.timing.certainAfterMs + clockSlackMs;
  const walked = await ctx.walks.back(ctx, step.server, from);
  if (walked.do === 'busy') return 'busy';
  if (walked.do === 'failed') {
    const { refusal, holdReason, message, retryAfterMs } = walked.failure;
    if (refusal === 'server' || refusal === 'not_now') {
      const reason = holdReason ?? 'unreachable';
      await heldOnTheWay(ctx, step.server, { reason, message, retryAfterMs }, step.now);
    }
    return null;
  }
  const { runs, begunAt, reaches } = walked.walk;
  for (const run of runs) {
    if (run.startedAtMs !== null && (run.startedAtMs < from || run.startedAtMs > until)) continue;
    const read = await ctx.walks.inputOf(ctx, step.server, run);
    if (!read.ok) return null;
    if (!sameInput(asked.input, read.input)) continue;
    const about = { scrapeId: step.attempt.scrape };
    const seen = await port.poll(run.runId, { waitSecs: 0, signal: ctx.stopping, about });
    if (!seen.ok) return null;
    if ((seen.value.actor ?? asked.tool) === asked.tool) return { found: run.runId };
  }
  return { found: null, covered: reaches <= from, readAt: begunAt };
}
