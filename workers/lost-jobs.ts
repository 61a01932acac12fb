import { setTimeout as delay } from 'node:timers/promises';
import { blankAttempt } from '../src/queue/attempt-store.js';
import { publicQueue, stageJobId } from '../src/queue/names.js';
import { type Attempt, type Decision, phaseRank } from '../src/run/attempt.js';
import { decide, outcomeDocument, type Subject } from '../src/run/outcome.js';
import { cleanText } from '../src/scrape/clean-text.js';
import { defaultBatch, isId, jobKey, safeId, splitJobKey } from '../src/scrape/identity.js';
import type { OutcomeDocument } from '../src/scrape/types.js';
import type { WorkerContext } from './context.js';
import { publish } from './publish.js';
import { publishAlone } from './stage.js';

const removed = 'Its job was removed from the queue by its producer.';
const keysATurn = 5_000;
const failuresATurn = 1_000;
/** Failures older than this were looked at by an elected process before this one. */
const lookBackMs = 3_600_000;
/** BullMQ did not count this end as one, so that any later take is an operator's retry. */
const neverFinished = -1;

/** Where a process is on its way through the keys and through the failed jobs. */
interface Place {
  cursor: string;
  failedSince: number;
}
const places = new WeakMap<WorkerContext, Place>();

function placeOf(ctx: WorkerContext): Place {
  const place = places.get(ctx) ?? { cursor: '0', failedSince: ctx.now() - lookBackMs };
  places.set(ctx, place);
  return place;
}

/**
 * Attempts whose public job its producer removed, jobs and all: nobody else would ever settle them. A few thousand keys a
 * turn; a run under way is found sooner, by the slot it holds.
 */
export async function settleRemoved(ctx: WorkerContext): Promise<void> {
  const place = placeOf(ctx);
  const head = ctx.keys.attempt('');
  for (let seen = 0; seen < keysATurn; seen += 1_000) {
    const [cursor, keys] = await ctx.redis.scan(place.cursor, 'MATCH', `${head}*`, 'COUNT', 1_000);
    place.cursor = cursor;
    const states = await Promise.all(keys.map((key) => ctx.redis.hmget(key, 'ph', 'job')));
    for (const [index, [phase, job]] of states.entries()) {
      const scrape = (keys[index] as string).slice(head.length);
      if (!phase || Number(phase) >= phaseRank('done') || splitJobKey(scrape) === null) continue;
      if (!(await ctx.queues.publicExists(job ?? scrape))) await settleAlone(ctx, scrape);
    }
    if (cursor === '0') return;
  }
}

async function settleAlone(ctx: WorkerContext, scrape: string): Promise<void> {
  const { attempt } = await ctx.store.load(scrape);
  if (attempt === null) return;
  const server = attempt.spec?.server ?? onlyServer(ctx);
  const cancelled = () => publishAs(ctx, attempt, decide('cancelled', removed, ctx.now()), 0);
  switch (attempt.phase) {
    case 'queued':
      if (!(await hasJob(ctx, attempt, ['start']))) await cancelled();
      return;
    case 'starting':
      if (await hasJob(ctx, attempt, ['start', 'poll'])) return;
      if (attempt.intentAt === null) {
        await cancelled();
        return;
      }
      // A run may exist: it is looked for, and aborted once it is found.
      await ctx.cancel(scrape);
      return ctx.queues.addStage('poll', attempt, server);
    case 'running':
    case 'aborting':
    case 'reading':
      if (await hasJob(ctx, attempt, ['pages', 'abort'])) return;
      return ctx.cancel(scrape);
    case 'decided':
      return publishAlone(ctx, attempt, server);
    case 'done':
      return;
    default:
      attempt.phase satisfies never;
  }
}

async function hasJob(
  ctx: WorkerContext,
  attempt: Attempt,
  stages: readonly ('start' | 'poll' | 'pages' | 'abort')[],
): Promise<boolean> {
  const servers = attempt.spec === null ? Object.keys(ctx.config.servers) : [attempt.spec.server];
  for (const server of servers) {
    if (!Object.hasOwn(ctx.config.servers, server)) continue;
    for (const stage of stages) {
      const id = stageJobId(attempt.scrape, attempt.n, stage);
      if ((await ctx.queues.stage(stage, server).getJob(id)) !== undefined) return true;
    }
  }
  return false;
}

/**
 * Public jobs that were failed by none of our workers, such as another program's on the same queue: they get an outcome, a
 * run under way is aborted, and the job says what the outcome says.
 */
export async function settleFailed(ctx: WorkerContext): Promise<void> {
  const place = placeOf(ctx);
  const failed = `${ctx.keys.queue(publicQueue)}:failed`;
  const until = ctx.now();
  const range = [place.failedSince, until, 'WITHSCORES', 'LIMIT', 0, failuresATurn] as const;
  const found = await ctx.redis.zrangebyscore(failed, ...range);
  for (let index = 0; index < found.length; index += 2) {
    const jobId = found[index] as string;
    const key = ctx.keys.job(publicQueue, jobId);
    const [progress, reason, timestamp] = await ctx.redis.hmget(key, 'progress', 'failedReason', 'timestamp');
    if (timestamp === null || saysOutcome(progress)) continue;
    await settleErrored(ctx, jobId, Number(timestamp), reason ?? 'no reason given');
  }
  // Once more the last second: a job that fails while we look has a time before it.
  const last = Number(found.at(-1));
  place.failedSince = found.length < 2 * failuresATurn || last === place.failedSince ? until - 1_000 : last;
}

function saysOutcome(progress: string | null | undefined): boolean {
  return progress?.includes('"outcome"') ?? false;
}

async function settleErrored(
  ctx: WorkerContext,
  jobId: string,
  submittedAt: number,
  reason: string,
): Promise<void> {
  // Nobody has tried it again in the meantime.
  await delay(500);
  if ((await ctx.redis.zscore(`${ctx.keys.queue(publicQueue)}:failed`, jobId)) === null) return;
  const named = splitJobKey(jobId) ?? { batch: defaultBatch, id: isId(jobId) ? jobId : safeId(jobId) };
  const loaded = await ctx.store.load(jobKey(named.batch, named.id));
  const attempt = loaded.attempt?.jobId === jobId ? loaded.attempt : null;
  if (attempt?.phase === 'done') return;
  const message = `Its job was failed by another program, not by Trawl (${cleanText(reason, 200)}); see to that before you retry it.`;
  ctx.log
    .module('fleet')
    .error({ event: 'job.failed', jobId: cleanText(jobId, 80), message }, 'a job was failed from outside');
  const say = (document: OutcomeDocument) =>
    ctx.redis.trawlMend(
      ctx.keys.job(publicQueue, jobId),
      ...['progress', JSON.stringify(document), 'failedReason', document.message],
    );
  if (attempt === null) {
    // Never accepted: there is nobody to tell but those who look at the job.
    const blank = blankAttempt(jobKey(named.batch, named.id), submittedAt);
    const decision = decide('errored', message, ctx.now());
    await say(outcomeDocument(blank, { ...named, server: '', tool: '', meta: null }, decision, null));
    return;
  }
  const server = attempt.spec?.server ?? onlyServer(ctx);
  if (attempt.runId !== null && attempt.endedAt === null && server !== '') {
    await ctx.queues.addOrphan(server, attempt.runId);
  }
  const decision = attempt.decision ?? decide('errored', message, ctx.now());
  await say(await publishAs(ctx, attempt, decision, neverFinished));
}

async function publishAs(
  ctx: WorkerContext,
  attempt: Attempt,
  decision: Decision,
  finishes: number,
): Promise<OutcomeDocument> {
  const subject = subjectOf(ctx, attempt);
  if (subject.server !== '') await ctx.server(subject.server).slots.release(attempt.scrape);
  return publish(ctx, attempt, subject, decision, finishes);
}

function subjectOf(ctx: WorkerContext, attempt: Attempt): Subject {
  const dot = attempt.scrape.indexOf('.');
  return {
    batch: attempt.scrape.slice(0, dot),
    id: attempt.scrape.slice(dot + 1),
    server: attempt.spec?.server ?? onlyServer(ctx),
    tool: attempt.spec?.tool ?? '',
    meta: null,
  };
}

function onlyServer(ctx: WorkerContext): string {
  const servers = Object.keys(ctx.config.servers);
  return servers.length === 1 ? (servers[0] ?? '') : '';
}
