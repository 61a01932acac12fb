import type { ServerConfig } from '../src/config.js';
import type { RunView } from '../src/mcp/port.js';
import type { SavedRun } from '../src/queue/attempt-store.js';
import type { Hold } from '../src/queue/holds.js';
import { stageQueue } from '../src/queue/names.js';
import type { Attempt } from '../src/run/attempt.js';
import { cancelledMessage, decide } from '../src/run/outcome.js';
import { afterStart, beforeStart } from '../src/run/start.js';
import { digestOf } from '../src/scrape/identity.js';
import type { Scrape } from '../src/scrape/types.js';
import type { WorkerContext } from './context.js';
import { GatedWorker, type Ticket } from './gated-worker.js';
import { handOn, readStartJob } from './hand-on.js';
import { lift, liftTool } from './probes.js';
import { toSearch } from './reconcile.js';
import { refused } from './refusals.js';
import { complete, type Next, runStep, type Step, settle, workerOptions } from './stage.js';
import { checkAgainstServer, memoryOf, runSpec } from './start-checks.js';
import type { Wakeups } from './wakeups.js';

const removedMessage = 'Its job was removed from the queue by its producer; nothing was spent.';

/**
 * Takes a start job (with a run slot, through the gate), starts the run once, saves its id before anything else, and
 * hands on to poll. Refusals put the job back and hold what is at fault; an unanswered start is reconciled.
 */
export function createStartWorker(ctx: WorkerContext, server: ServerConfig, wakeups: Wakeups): GatedWorker {
  const { slots } = ctx.server(server.name);
  const concurrency = Math.min(server.limits.runs, 64);
  const worker: GatedWorker = new GatedWorker(
    stageQueue('start', server.name),
    (job, token) =>
      runStep(ctx, 'start', server.name, job, token ?? '', (step) => start(ctx, server, step, worker)),
    workerOptions(ctx, concurrency, 20),
    ctx,
    slots,
    wakeups,
    server.name,
  );
  return worker;
}

async function start(ctx: WorkerContext, server: ServerConfig, step: Step, gate: GatedWorker): Promise<Next> {
  const { slots } = ctx.server(server.name);
  const { attempt } = step;
  const ticket = gate.ticketOf(step.lock.token);
  const { scrape, removed, message } = await readStartJob(ctx, attempt);
  const before = beforeStart(attempt, step.now, scrape?.expiresInMs ?? null);
  if (before.do === 'start' && scrape !== null) return startBound(ctx, server, step, scrape, gate, ticket);
  try {
    switch (before.do) {
      case 'nothing':
        return complete;
      case 'hand_on':
        await handOn(ctx, step, attempt.spec?.tool ?? '');
        return complete;
      case 'settle':
        return await settle(ctx, step, before.decision);
      case 'reconcile':
        return await toSearch(ctx, step);
      case 'start':
        if (removed) return await settle(ctx, step, decide('cancelled', removedMessage, step.now));
        // Also the allow-list, enforced here again: the configuration may have changed since the scrape was accepted.
        return await settle(ctx, step, decide('rejected', message, step.now));
      default:
        return before satisfies never;
    }
  } finally {
    await slots.release(ticket.member);
  }
}

/** The reserved slot becomes the scrape's, and goes back unless a run, or the search for one, has it in the end. */
async function startBound(
  ctx: WorkerContext,
  server: ServerConfig,
  step: Step,
  scrape: Scrape,
  gate: GatedWorker,
  ticket: Ticket,
): Promise<Next> {
  const { slots } = ctx.server(server.name);
  const key = step.attempt.scrape;
  ctx.tracing.note({ tool: scrape.tool });
  let result: Started | null = null;
  try {
    result = await bindAndStart(ctx, server, step, scrape, gate, ticket);
    return result.next;
  } finally {
    if (result !== null && !result.keepsSlot) await slots.giveBack(ticket.member, key);
    // After a fault a run may exist: whoever takes the job next finds the slot, or it runs out.
    else slots.leave(key);
  }
}

async function bindAndStart(
  ctx: WorkerContext,
  server: ServerConfig,
  step: Step,
  scrape: Scrape,
  gate: GatedWorker,
  ticket: Ticket,
): Promise<Started> {
  const { slots } = ctx.server(server.name);
  const key = step.attempt.scrape;
  const { block, refusal } = await ctx.holds.against(server.name, scrape.tool, key);
  if (block.do === 'blocked') {
    const until = await ctx.holds.park(server.name, scrape.tool, step.job.id as string, step.now);
    return without({ do: 'snooze', until });
  }
  try {
    if (refusal !== null) {
      await ctx.refusals.forget(server.name, scrape.tool, key);
      return without(await settle(ctx, step, decide('rejected', refusal, step.now)));
    }
    switch (await slots.bind(ticket.member, key, memoryOf(server, scrape))) {
      case 'bound':
        break;
      case 'none':
        return without({ do: 'put_back' });
      case 'memory':
        gate.restUntilRelease();
        return without({ do: 'put_back' });
    }
    return await startRun(ctx, server, step, scrape, {
      ticket,
      tool: block.do === 'probe' ? block.hold : null,
    });
  } finally {
    if (block.do === 'probe' && !ticket.tried) await ctx.holds.spareProbe(server.name, scrape.tool);
  }
}

/** What is held and let this start through to see whether it works again. */
interface Probing {
  readonly ticket: Ticket;
  readonly tool: Hold | null;
}

interface Started {
  readonly next: Next;
  readonly keepsSlot: boolean;
}

const without = (next: Next): Started => ({ next, keepsSlot: false });

async function startRun(
  ctx: WorkerContext,
  server: ServerConfig,
  step: Step,
  scrape: Scrape,
  probing: Probing,
): Promise<Started> {
  const { port } = ctx.server(server.name);
  const refusedInput = await checkAgainstServer(ctx, port, scrape, step);
  // An input that is rejected says nothing of its server.
  probing.ticket.tried = refusedInput?.do !== 'complete';
  if (refusedInput !== null) return without(refusedInput);
  const intentAt = ctx.now();
  const intent = {
    intentAt,
    startedAt: intentAt,
    deadlineAt: intentAt + scrape.deadlineMs,
    spec: runSpec(scrape),
    digest: digestOf(scrape.tool, scrape.input, scrape.server),
    asked: { tool: scrape.tool, input: scrape.input },
    stallBase: step.stallBase,
  };
  const queued = { lowest: 'queued', highest: 'starting' } as const;
  const [written] = await Promise.all([
    ctx.store.advance(step.attempt, step.lock, queued, 'starting', intent),
    ctx.recent.add(server.name, step.attempt.scrape, intentAt),
  ]);
  if (written === 'stale') return without(complete);
  const attempt = { ...step.attempt, intentAt };
  const last = lastLook(ctx, attempt);
  /** Whether a progress notification named the run, and it was saved. */
  let named: Promise<boolean> = Promise.resolve(false);
  const result = await port.start({
    about: { scrapeId: attempt.scrape },
    tool: scrape.tool,
    input: scrape.input,
    options: scrape.options,
    runTimeoutMs: Math.min(scrape.options.timeoutMs ?? Number.POSITIVE_INFINITY, scrape.deadlineMs + 60_000),
    timeoutMs: ctx.config.start.timeoutMs,
    sendBy: intentAt + ctx.timing.sendWithinMs,
    stillWanted: last.look,
    onRunId: (runId) => {
      named = saveRun(ctx, server, attempt, scrape, runId, null).then(
        () => true,
        (error) => {
          ctx.log.warn(
            { event: 'run.save', err: error },
            'the run id could not be saved; its answer is awaited',
          );
          return false;
        },
      );
    },
  });
  probing.ticket.tried = last.found() === 'nothing';
  switch (last.found()) {
    case 'superseded':
      return { next: complete, keepsSlot: true };
    case 'cancelled': {
      const none = { intentAt: null, asked: null, startedAt: null, deadlineAt: null };
      await ctx.store.advance(attempt, step.lock, { lowest: 'starting', highest: 'starting' }, null, none);
      return without(await settle(ctx, step, decide('cancelled', cancelledMessage(attempt), ctx.now())));
    }
    case 'nothing':
      break;
  }
  const after = afterStart(result, ctx.now());
  switch (after.do) {
    case 'run':
      return started(ctx, server, { ...step, attempt }, scrape, after.run, probing);
    case 'settle':
      // A refusal of what has a run already says nothing of that run.
      if (await named) return { next: await toSearch(ctx, { ...step, attempt }), keepsSlot: true };
      if (after.unrecognised)
        return without(await ctx.refusals.unrecognised(ctx, step, scrape.tool, after.decision));
      return without(await settle(ctx, step, after.decision));
    case 'put_back':
      return without(await refused(ctx, server.name, step, scrape.tool, after, intentAt));
    case 'reconcile':
      ctx.log.warn(
        { event: 'start.unanswered', scrapeId: attempt.scrape, server: server.name, message: after.message },
        'the answer of a start was lost; looking for its run',
      );
      return { next: await toSearch(ctx, { ...step, attempt }), keepsSlot: true };
    default:
      return after satisfies never;
  }
}

/**
 * The last look before money is spent, when the call has its turn: a cancel from here on finds the intent, and the run is
 * aborted. `superseded`: this process was frozen past its lock, and another has taken over; the call would be a second one.
 */
function lastLook(ctx: WorkerContext, attempt: Attempt) {
  let found: 'nothing' | 'superseded' | 'cancelled' = 'nothing';
  let fault: unknown = null;
  return {
    async look(): Promise<boolean> {
      try {
        const { attempt: now } = await ctx.store.load(attempt.scrape);
        if (now?.n !== attempt.n || now.intentAt !== attempt.intentAt) found = 'superseded';
        else if (now.cancelledAt !== null) found = 'cancelled';
        return found === 'nothing';
      } catch (error) {
        fault = error;
        return false;
      }
    },
    /** @throws what the look failed with: a fault of ours, not of the server */
    found() {
      if (fault !== null) throw fault;
      return found;
    },
  };
}

async function started(
  ctx: WorkerContext,
  server: ServerConfig,
  step: Step,
  scrape: Scrape,
  run: RunView,
  probing: Probing,
): Promise<Started> {
  const { attempt } = step;
  const ids = { scrapeId: attempt.scrape, runId: run.runId, server: server.name };
  switch (await saveRun(ctx, server, attempt, scrape, run.runId, run)) {
    case 'saved':
    case 'known':
      break;
    case 'claimed':
      // Another scrape with an equal input lost its answer and took this run for its own; ours may be the other one.
      ctx.log.warn(
        { event: 'run.claimed', ...ids },
        'this run was adopted by another scrape; looking for ours',
      );
      return { next: await toSearch(ctx, step), keepsSlot: true };
    case 'orphan':
      ctx.log.warn({ event: 'run.orphan', ...ids }, 'the attempt went on without this run; aborting it');
      await ctx.queues.addOrphan(server.name, run.runId);
      return { next: complete, keepsSlot: true };
  }
  ctx.log.info({ event: 'scrape.started', ...ids, tool: scrape.tool }, 'run started');
  await handOn(ctx, step, scrape.tool);
  if (probing.ticket.probe !== '') await lift(ctx, server.name);
  if (probing.tool !== null && probing.tool.proof !== 'runs') await liftTool(ctx, server.name, scrape.tool);
  return { next: complete, keepsSlot: true };
}

/** The run id first, alone decisive; a run that is not ours to keep is said to be so. */
async function saveRun(
  ctx: WorkerContext,
  server: ServerConfig,
  attempt: Attempt,
  scrape: Scrape,
  runId: string,
  run: RunView | null,
): Promise<SavedRun> {
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
  return ctx.store.saveRun(
    attempt,
    ctx.server(server.name).account,
    attempt.intentAt,
    runId,
    details,
    scrape,
  );
}
