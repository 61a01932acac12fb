import type { HoldReason } from '../src/mcp/port.js';
import { backoff } from '../src/run/schedule.js';
import type { WorkerContext } from './context.js';
import { complete, type Next, type Step } from './stage.js';

export interface Refusal {
  readonly hold: 'cool_down' | 'server' | 'tool' | 'none';
  readonly reason: HoldReason;
  readonly retryAfterMs: number | null;
  readonly message: string;
}

/**
 * A start that provably had no effect: what is at fault is held, and the job goes back to its place with nothing spent.
 * The intent is cleared first, so that whoever takes the job next may start it. `sentAt`: no later than the call was sent.
 */
export async function refused(
  ctx: WorkerContext,
  server: string,
  step: Step,
  tool: string,
  refusal: Refusal,
  sentAt = step.now,
): Promise<Next> {
  const written = await ctx.store.advance(
    step.attempt,
    step.lock,
    { lowest: 'queued', highest: 'starting' },
    null,
    { intentAt: null, asked: null, startedAt: null, deadlineAt: null },
  );
  if (written === 'stale') return complete;
  switch (refusal.hold) {
    case 'cool_down':
      await coolDown(ctx, server, refusal, true, sentAt);
      return { do: 'put_back' };
    case 'server':
      await holdServer(ctx, server, refusal.reason, refusal.message);
      return { do: 'put_back' };
    case 'tool':
      return holdTool(ctx, server, step, tool, refusal.reason, refusal.message);
    case 'none':
      return { do: 'snooze', until: ctx.now() + backoff(5_000, step.job.attemptsStarted, 120_000) };
    default:
      return refusal.hold satisfies never;
  }
}

/** Holds a tool and sets the job aside until it is released. */
export async function holdTool(
  ctx: WorkerContext,
  server: string,
  step: Step,
  tool: string,
  reason: HoldReason,
  message: string,
): Promise<Next> {
  const now = ctx.now();
  if (await ctx.holds.holdTool(server, tool, reason, message, now)) {
    ctx.log
      .module('fleet')
      .error(
        { event: 'tool.held', server, tool, reason, message },
        'tool held: its jobs wait until it works again',
      );
  }
  return { do: 'snooze', until: await ctx.holds.park(server, tool, step.job.id as string, now) };
}

export async function holdServer(
  ctx: WorkerContext,
  server: string,
  reason: HoldReason,
  message: string,
): Promise<void> {
  if (!(await ctx.holds.holdServer(server, reason, message, ctx.now()))) return;
  ctx.log
    .module('fleet')
    .error(
      { event: 'server.held', server, reason, message },
      'server held: nothing is started until it works again',
    );
}

export async function coolDown(
  ctx: WorkerContext,
  server: string,
  refusal: Pick<Refusal, 'reason' | 'retryAfterMs' | 'message'>,
  sink: boolean,
  sentAt: number,
): Promise<void> {
  const { reason, retryAfterMs } = refusal;
  const { ms, began } = await ctx.holds.coolDown(server, reason, retryAfterMs, sink, ctx.now() - sentAt);
  if (!began) return;
  ctx.log
    .module('fleet')
    .warn(
      { event: 'server.cool_down', server, reason: refusal.reason, ms, message: refusal.message },
      'the server says not now; starts wait',
    );
}

/**
 * A poll, read or abort that met a sick server: starts are held, and this job comes back later.
 *
 * @param sentAt no later than the call was sent
 */
export async function heldOnTheWay(
  ctx: WorkerContext,
  server: string,
  refusal: Pick<Refusal, 'reason' | 'retryAfterMs' | 'message'>,
  sentAt: number,
): Promise<void> {
  if (refusal.reason === 'rate_limit' || refusal.reason === 'capacity')
    await coolDown(ctx, server, refusal, false, sentAt);
  else await holdServer(ctx, server, refusal.reason, refusal.message);
}
