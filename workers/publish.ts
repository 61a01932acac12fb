import { publishOutcome } from '../src/queue/publish.js';
import type { Attempt, Decision } from '../src/run/attempt.js';
import { outcomeClass, type Subject } from '../src/run/outcome.js';
import type { OutcomeDocument } from '../src/scrape/types.js';
import type { WorkerContext } from './context.js';

/** Whose attempt it is, as far as the attempt itself tells. */
export function subjectOf(attempt: Attempt, server: string): Subject {
  const dot = attempt.scrape.indexOf('.');
  return {
    batch: attempt.scrape.slice(0, dot),
    id: attempt.scrape.slice(dot + 1),
    server,
    tool: attempt.spec?.tool ?? '',
    meta: null,
  };
}

/** Publishes a decision and, the first time, counts and logs it. */
export async function publish(
  ctx: WorkerContext,
  attempt: Attempt,
  subject: Subject & { readonly digest?: string },
  decision: Decision,
  finishes: number,
): Promise<OutcomeDocument> {
  const { redis, keys, sink, timing } = ctx;
  const deps = { redis, keys, sink, keep: ctx.config.keep, claimMs: timing.claimAfterMs };
  const { document, first } = await ctx.tracing.span(
    'settle',
    { scrapeId: attempt.scrape, runId: attempt.runId, outcome: decision.outcome },
    () => publishOutcome(deps, attempt, subject, decision, finishes),
    ({ document: { outcome, items, pages } }) => ({ outcome, items, pages }),
  );
  ctx.tracing.note({ outcome: document.outcome, runId: document.runId });
  ctx.metrics.sinkHeld(ctx.sink.name, false);
  if (!first) return document;
  const { server, tool, outcome } = document;
  ctx.metrics.scrapeSettled(server, tool, outcome);
  ctx.metrics.scrapeDuration(server, tool, Math.max(0, decision.finishedAt - attempt.submittedAt) / 1000);
  if (attempt.usageUsd !== null) ctx.metrics.usage(server, tool, attempt.usageUsd);
  // What was turned away before it became a scrape says nothing of its tool.
  if (attempt.phase === 'decided') {
    await ctx.brake.record(server, tool, outcome, attempt.startedAt, ctx.now());
  }
  const verdict = outcomeClass(outcome, attempt.spec?.onEmpty);
  const level = verdict === 'ok' ? 'info' : 'warn';
  ctx.log[level](
    {
      event: 'scrape.settled',
      scrapeId: attempt.scrape,
      runId: document.runId ?? undefined,
      server,
      tool,
      outcome,
      items: document.items,
      usageUsd: document.usageUsd ?? undefined,
      message: document.message,
    },
    `scrape ${outcome}`,
  );
  return document;
}
