import type { Worker } from 'bullmq';
import type { ServerConfig } from '../src/config.js';
import { checkInput } from '../src/mcp/input-check.js';
import type { RunView, ScrapeServer } from '../src/mcp/port.js';
import { stageQueue } from '../src/queue/names.js';
import type { Attempt, RunSpec } from '../src/run/attempt.js';
import { decide } from '../src/run/outcome.js';
import { afterStart, beforeStart } from '../src/run/start.js';
import { digestOf } from '../src/scrape/identity.js';
import type { Scrape } from '../src/scrape/types.js';
import type { WorkerContext } from './context.js';
import { GatedWorker } from './gated-worker.js';
import { readPublicJob } from './public-job.js';
import { reconcile } from './reconcile.js';
import { refused } from './refusals.js';
import { complete, type Next, runStep, type Step, settle, workerOptions } from './stage.js';
import type { Wakeups } from './wakeups.js';

const removedMessage = 'Its job was removed from the queue by its producer; nothing was spent.';

/**
 * Takes a start job (with a run slot, through the gate), starts the run once, saves its id before anything else, and
 * hands on to poll. Refusals put the job back and hold what is at fault; an unanswered start is reconciled.
 */
export function createStartWorker(ctx: WorkerContext, server: ServerConfig, wakeups: Wakeups): Worker {
  const { slots } = ctx.server(server.name);
  const concurrency = Math.min(server.limits.runs, 64);
  const worker: GatedWorker = new GatedWorker(
    stageQueue('start', server.name),
    (job, token) =>
      runStep(ctx, 'start', server.name, job, token ?? '', (step) =>
        start(ctx, server, step, worker.slotOf(token ?? '') ?? ''),
      ),
    workerOptions(ctx, concurrency, 20),
    ctx,
    slots,
    wakeups,
    server.name,
  );
  return worker;
}

async function start(
  ctx: WorkerContext,
  server: ServerConfig,
  step: Step,
  reservation: string,
): Promise<Next> {
  const { slots } = ctx.server(server.name);
  const { attempt } = step;
  let bound = false;
  try {
    const raw = await ctx.queues.publicData(attempt.jobId);
    const read = raw === null ? null : readPublicJob(ctx, attempt.jobId, JSON.parse(raw));
    const scrape = read?.ok ? read.scrape : null;
    const before = beforeStart(attempt, step.now, scrape?.expiresInMs ?? null);
    switch (before.do) {
      case 'nothing':
        return complete;
      case 'hand_on':
        await handOn(ctx, step);
        bound = true;
        return complete;
      case 'settle':
        return await settle(ctx, step, before.decision);
      case 'reconcile':
        bound = (await slots.bind(reservation, attempt.scrape, 0)) === 'bound';
        return await reconcile(ctx, server, step, scrape);
      case 'start':
        break;
      default:
        return before satisfies never;
    }
    if (read === null) return await settle(ctx, step, decide('cancelled', removedMessage, step.now));
    // Also the allow-list, enforced here again: the configuration may have changed since the scrape was accepted.
    if (!read.ok) return await settle(ctx, step, decide('rejected', read.message, step.now));
    if (scrape === null) return complete;
    const block = await ctx.holds.toolBlock(server.name, scrape.tool);
    if (block !== null) {
      const until = await ctx.holds.park(server.name, scrape.tool, step.job.id as string, step.now);
      return { do: 'snooze', until };
    }
    const memory = scrape.options.memory ?? 0;
    switch (await slots.bind(reservation, attempt.scrape, memory)) {
      case 'bound':
        bound = true;
        break;
      case 'none':
        return { do: 'put_back' };
      case 'memory':
        await ctx.holds.coolDown(server.name, 'capacity', null, false);
        return { do: 'put_back' };
    }
    const next = await startRun(ctx, server, step, scrape);
    if (next.do === 'snooze' || next.do === 'put_back') bound = false;
    return next;
  } finally {
    if (!bound) await slots.release(reservation, attempt.scrape);
  }
}

async function startRun(ctx: WorkerContext, server: ServerConfig, step: Step, scrape: Scrape): Promise<Next> {
  const { port } = ctx.server(server.name);
  const refusedInput = await checkAgainstServer(ctx, port, scrape, step);
  if (refusedInput !== null) return refusedInput;
  const intentAt = ctx.now();
  const written = await ctx.store.advance(
    step.attempt,
    step.lock,
    { lowest: 'queued', highest: 'starting' },
    'starting',
    {
      intentAt,
      startedAt: intentAt,
      deadlineAt: intentAt + scrape.deadlineMs,
      spec: runSpec(scrape),
      digest: digestOf(scrape.tool, scrape.input, scrape.server),
      stallBase: step.stallBase,
    },
  );
  if (written === 'stale') return complete;
  const attempt = { ...step.attempt, intentAt };
  const result = await port.start({
    tool: scrape.tool,
    input: scrape.input,
    options: scrape.options,
    runTimeoutMs: Math.min(scrape.options.timeoutMs ?? Number.POSITIVE_INFINITY, scrape.deadlineMs + 60_000),
    timeoutMs: ctx.config.start.timeoutMs,
    onRunId: (runId) => {
      saveRun(ctx, server, attempt, runId, null).catch((error) =>
        ctx.log.warn({ event: 'run.save', err: error }),
      );
    },
  });
  const after = afterStart(result, ctx.now());
  switch (after.do) {
    case 'run': {
      const saved = await saveRun(ctx, server, attempt, after.run.runId, after.run);
      if (saved === 'orphan') {
        await ctx.queues.addOrphan(server.name, after.run.runId);
        ctx.metrics.orphanRun(server.name, 'aborted');
        return complete;
      }
      ctx.log.info(
        { event: 'scrape.started', scrapeId: attempt.scrape, runId: after.run.runId, server: server.name },
        'run started',
      );
      await handOn(ctx, step);
      return complete;
    }
    case 'settle':
      return await settle(ctx, step, after.decision);
    case 'put_back':
      return await refused(ctx, server.name, step, scrape.tool, after);
    case 'reconcile':
      ctx.log.warn(
        { event: 'start.unanswered', scrapeId: attempt.scrape, server: server.name, message: after.message },
        'the answer of a start was lost; looking for its run',
      );
      return await reconcile(ctx, server, { ...step, attempt, now: ctx.now() }, scrape);
    default:
      return after satisfies never;
  }
}

/** The server's own list of tools and the Actor's input schema, before any money is spent. */
async function checkAgainstServer(
  ctx: WorkerContext,
  port: ScrapeServer,
  scrape: Scrape,
  step: Step,
): Promise<Next | null> {
  const described = await port.describe();
  if (!described.ok) {
    const after = afterStart(described, ctx.now());
    const hold = after.do === 'put_back' ? after : null;
    return await refused(ctx, scrape.server, step, scrape.tool, {
      hold: hold?.hold ?? 'server',
      reason: hold?.reason ?? 'unreachable',
      retryAfterMs: described.failure.retryAfterMs,
      message: described.failure.message,
    });
  }
  const tool = described.value.tools.get(scrape.tool);
  if (tool === undefined) {
    return await refused(ctx, scrape.server, step, scrape.tool, {
      hold: 'tool',
      reason: 'tools_missing',
      retryAfterMs: null,
      message: `The server does not show the tool ${scrape.tool}; check its name and that the token may use it.`,
    });
  }
  if (described.value.via === 'direct' && Object.keys(scrape.options).length > 0) {
    const message = `The server offers no call-actor, so run options (${Object.keys(scrape.options).join(', ')}) would be ignored; remove them or expose call-actor.`;
    return await settle(ctx, step, decide('rejected', message, step.now));
  }
  const problems = tool.inputSchema === null ? [] : checkInput(tool.inputSchema, scrape.input);
  if (problems.length === 0) return null;
  const message = `The input does not fit the tool's schema: ${problems.slice(0, 5).join('; ')}. Nothing was spent.`;
  return await settle(ctx, step, decide('rejected', message, step.now));
}

/** The run id first, alone decisive; a run that is not ours to keep is reported as `orphan`. */
async function saveRun(
  ctx: WorkerContext,
  server: ServerConfig,
  attempt: Attempt,
  runId: string,
  run: RunView | null,
): Promise<'saved' | 'known' | 'orphan'> {
  const details =
    run === null
      ? {}
      : {
          status: run.status,
          datasetId: run.datasetId,
          storeId: run.storeId,
          serverStartedAt: run.startedAtMs,
          repliedAt: ctx.now(),
          usageUsd: run.usageUsd,
        };
  const claimMs = ctx.config.keep.settledMs;
  return ctx.store.saveRun(attempt, server.name, attempt.intentAt, runId, details, claimMs);
}

/** The slot goes to the run, the poll job is added; doing it again does nothing. */
async function handOn(ctx: WorkerContext, step: Step): Promise<void> {
  const { slots } = ctx.server(step.server);
  await slots.toRun(step.attempt.scrape);
  await ctx.queues.addStage('poll', step.attempt, step.server, { delayMs: ctx.config.poll.intervalMs });
}

function runSpec(scrape: Scrape): RunSpec {
  return {
    batch: scrape.batch,
    id: scrape.id,
    server: scrape.server,
    tool: scrape.tool,
    deadlineMs: scrape.deadlineMs,
    minItems: scrape.minItems,
    onEmpty: scrape.onEmpty,
    retries: scrape.retries,
    fields: scrape.fields,
    records: scrape.records,
    maxItems: scrape.options.maxItems ?? null,
    maxTotalChargeUsd: scrape.options.maxTotalChargeUsd ?? null,
  };
}
