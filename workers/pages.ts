import type { Worker } from 'bullmq';
import type { ServerConfig } from '../src/config.js';
import type { AttemptPatch, StoredEvent } from '../src/queue/attempt-store.js';
import { stageJobId } from '../src/queue/names.js';
import type { Attempt, RunSpec, Slice } from '../src/run/attempt.js';
import { decide, decideFinished } from '../src/run/outcome.js';
import { afterRead, afterWrite, beforeRead } from '../src/run/pages.js';
import type { SinkTarget } from '../src/sinks/contract.js';
import type { WorkerContext } from './context.js';
import { writeRecords } from './records.js';
import { heldOnTheWay } from './refusals.js';
import { aboutOf, complete, createStageWorker, cutOff, type Next, type Step, settle } from './stage.js';

/**
 * Takes the pages job of a final run, reads its dataset slice by slice, makes each page durable before the next is asked
 * for, then its records, and decides the outcome.
 */
export function createPagesWorker(ctx: WorkerContext, server: ServerConfig): Worker {
  return createStageWorker(ctx, 'pages', server.name, 32, (step) => pages(ctx, step));
}

async function pages(ctx: WorkerContext, step: Step): Promise<Next> {
  const { spec } = step.attempt;
  if (step.attempt.phase !== 'reading' || spec === null) return complete;
  const target: SinkTarget = {
    batch: spec.batch,
    id: spec.id,
    attempt: step.attempt.n,
    digest: step.attempt.digest,
  };
  await ctx.sink.begin(target);
  if (step.attempt.cancelledAt !== null) return finishCancelled(ctx, step, spec, target);
  let { attempt } = step;
  for (;;) {
    const before = beforeRead(attempt, spec, ctx.config.results.pageBytes, ctx.now());
    if (before.do === 'wait') return snooze(ctx, step, before.until, {});
    if (before.do === 'finish') return settle(ctx, { ...step, attempt }, before.decision);
    const turn = await readSlice(ctx, { ...step, attempt }, spec, target, before.slice);
    if (turn.do === 'leave') return turn.next;
    if (turn.do === 'end') return finish(ctx, { ...step, attempt: turn.attempt }, spec, target, turn.shortOf);
    attempt = turn.attempt;
  }
}

/** Nothing more is read. A page that became durable just before its writer died, uncounted, counts as well. */
async function finishCancelled(
  ctx: WorkerContext,
  step: Step,
  spec: RunSpec,
  target: SinkTarget,
): Promise<Next> {
  let { attempt } = step;
  const { slice } = attempt;
  const page = slice === null ? null : await ctx.sink.findPage(target, slice.index);
  if (slice !== null && page !== null) {
    const counted = {
      pages: attempt.pages + 1,
      items: attempt.items + page.items,
      bytes: attempt.bytes + page.bytes,
      slice: null,
    };
    if (!(await save(ctx, step, counted, pageEvent(target, slice, page.items, page.bytes)))) return complete;
    attempt = { ...attempt, ...counted };
  }
  return settle(ctx, { ...step, attempt }, decideFinished(attempt, spec, ctx.now(), null));
}

/**
 * A cancelled scrape whose run is over, from the abort queue: its pages job ends it, unless that is gone. Two at a time would
 * not agree on what was written.
 */
export async function cancelReading(ctx: WorkerContext, step: Step, spec: RunSpec): Promise<Next> {
  const { attempt, server } = step;
  if (!(await ctx.queues.removeStage('pages', server, attempt.scrape, attempt.n))) {
    const id = stageJobId(attempt.scrape, attempt.n, 'pages');
    const inHand = await ctx.queues.stage('pages', server).getJob(id);
    if (inHand !== undefined) return { do: 'snooze', until: ctx.now() + 500 };
  }
  const { attempt: fresh } = await ctx.store.load(attempt.scrape);
  if (fresh === null || fresh.n !== attempt.n || fresh.phase !== 'reading') return complete;
  const target: SinkTarget = { batch: spec.batch, id: spec.id, attempt: fresh.n, digest: fresh.digest };
  await ctx.sink.begin(target);
  return finishCancelled(ctx, { ...step, attempt: fresh }, spec, target);
}

type Turn =
  | { readonly do: 'go_on'; readonly attempt: Attempt }
  | { readonly do: 'end'; readonly attempt: Attempt; readonly shortOf: number | null }
  | { readonly do: 'leave'; readonly next: Next };

async function readSlice(
  ctx: WorkerContext,
  step: Step,
  spec: RunSpec,
  target: SinkTarget,
  slice: Slice,
): Promise<Turn> {
  const { attempt } = step;
  if (attempt.slice === null) {
    if (!(await save(ctx, step, { slice, stallBase: step.stallBase })))
      return { do: 'leave', next: complete };
  }
  const requestedAt = ctx.now();
  const result = await ctx.server(step.server).port.readPage(
    {
      datasetId: attempt.datasetId as string,
      offset: slice.offset,
      limit: slice.limit,
      fields: spec.fields,
      about: aboutOf(attempt),
    },
    ctx.stopping,
  );
  if (cutOff(ctx, result)) return { do: 'leave', next: { do: 'snooze', until: ctx.now() } };
  const after = afterRead(attempt, slice, result, requestedAt, ctx.config.results.pageBytes);
  switch (after.do) {
    case 'write':
      return writePage(ctx, step, target, after);
    case 'shrink': {
      const next = { ...attempt, slice: after.slice };
      if (!(await save(ctx, step, { slice: after.slice }))) return { do: 'leave', next: complete };
      return { do: 'go_on', attempt: next };
    }
    case 'end':
      return { do: 'end', attempt, shortOf: after.shortOf };
    case 'wait':
      return { do: 'leave', next: await snooze(ctx, step, after.until, { reads: attempt.reads + 1 }) };
    case 'hold':
      await heldOnTheWay(ctx, step.server, after, requestedAt);
      return { do: 'leave', next: await snooze(ctx, step, after.until, { reads: attempt.reads + 1 }) };
    case 'give_up': {
      const message = `The run ended ${attempt.status} but its items could not be read: ${after.message} The ${attempt.items} read before were kept.`;
      const decision = decide('failed', message, ctx.now(), attempt.warnings);
      return { do: 'leave', next: await settle(ctx, step, decision) };
    }
    default:
      return after satisfies never;
  }
}

async function writePage(
  ctx: WorkerContext,
  step: Step,
  target: SinkTarget,
  write: { slice: Slice; lines: readonly string[]; replan: boolean; end: boolean },
): Promise<Turn> {
  const { attempt } = step;
  const { slice, lines } = write;
  if (write.replan && !(await save(ctx, step, { slice }))) return { do: 'leave', next: complete };
  const durable = await ctx.tracing.span(
    'page write',
    { page: slice.index, offset: slice.offset, sink: ctx.sink.name },
    () => ctx.sink.writePage(target, { index: slice.index, offset: slice.offset, lines }),
    ({ lines: items, bytes, existed }) => ({ items, bytes, existed }),
  );
  ctx.metrics.sinkHeld(ctx.sink.name, false);
  const { end, ...counted } = afterWrite(attempt, write, durable.lines, ctx.config.results.pageBytes);
  const patch = { ...counted, reads: null, faults: null, stallBase: step.stallBase };
  const { bytes, existed } = durable;
  if (!(await save(ctx, step, patch, pageEvent(target, slice, durable.lines, bytes))))
    return { do: 'leave', next: complete };
  if (!existed) ctx.metrics.pageWritten(step.server, ctx.sink.name, { items: durable.lines, bytes });
  const written: Attempt = { ...attempt, ...counted, reads: 0 };
  if (end) return { do: 'end', attempt: written, shortOf: null };
  const { attempt: fresh } = await ctx.store.load(attempt.scrape);
  return { do: 'go_on', attempt: { ...written, cancelledAt: fresh?.cancelledAt ?? null } };
}

async function finish(
  ctx: WorkerContext,
  step: Step,
  spec: RunSpec,
  target: SinkTarget,
  shortOf: number | null,
): Promise<Next> {
  const records = await writeRecords(ctx, step, spec, target);
  if (records.do === 'leave') return records.next;
  return settle(ctx, step, decideFinished(records.attempt, spec, ctx.now(), shortOf));
}

async function snooze(ctx: WorkerContext, step: Step, until: number, patch: AttemptPatch): Promise<Next> {
  // Having come to a wait is progress: locks lost before it are no sign of a poisonous job.
  const got = step.stallBase === step.attempt.stallBase ? patch : { ...patch, stallBase: step.stallBase };
  if (Object.keys(got).length > 0 && !(await save(ctx, step, got))) return complete;
  return { do: 'snooze', until };
}

/** False when another worker has moved on. */
export async function save(
  ctx: WorkerContext,
  step: Step,
  patch: AttemptPatch,
  event: StoredEvent | null = null,
): Promise<boolean> {
  const from = { lowest: 'reading', highest: 'reading' } as const;
  return (await ctx.store.advance(step.attempt, step.lock, from, null, patch, event)) === 'done';
}

function pageEvent(target: SinkTarget, slice: Slice, items: number, bytes: number): StoredEvent {
  const data = { page: slice.index, offset: slice.offset, items, bytes, attempt: target.attempt };
  return { type: 'page.written', id: target.id, batch: target.batch, data };
}
