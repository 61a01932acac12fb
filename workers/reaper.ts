import type { RunListing } from '../src/mcp/port.js';
import { type Attempt, phaseRank } from '../src/run/attempt.js';
import { decide } from '../src/run/outcome.js';
import { equalInput, sameInput } from '../src/run/reconcile.js';
import { splitJobKey } from '../src/scrape/identity.js';
import type { WorkerContext } from './context.js';
import { readStartJob } from './hand-on.js';
import { publish } from './publish.js';
import { parse } from './run-walks.js';

const removed = 'Its job was removed from the queue by its producer; nothing was spent.';

/** Slots that looked leaked one turn ago: a slot is released only when it looks so twice, for hand-ons take a moment. */
const suspects = new WeakMap<WorkerContext, Set<string>>();

/**
 * Looks at every slot a run holds: one whose attempt has seen the run's end, or is gone, is released; a scrape whose
 * public job was removed by its producer is cancelled, so that its run does not go on unowned.
 */
export async function reapSlots(ctx: WorkerContext): Promise<void> {
  const before = suspects.get(ctx) ?? new Set();
  const now = new Set<string>();
  suspects.set(ctx, now);
  for (const server of Object.keys(ctx.config.servers)) {
    const { slots } = ctx.server(server);
    for (const scrape of await slots.holders()) {
      const { attempt } = splitJobKey(scrape) === null ? { attempt: null } : await ctx.store.load(scrape);
      if (attempt === null || !holdsSlot(attempt)) {
        if (!before.has(scrape)) {
          now.add(scrape);
          continue;
        }
        await slots.release(scrape);
        ctx.log
          .module('fleet')
          .warn({ event: 'slot.reaped', scrapeId: scrape, server }, 'a slot without a run was released');
        continue;
      }
      if (attempt.cancelledAt !== null || (await ctx.queues.publicExists(attempt.jobId))) continue;
      ctx.log
        .module('fleet')
        .warn({ event: 'scrape.removed', scrapeId: scrape, server }, 'its job was removed; aborting its run');
      await ctx.cancel(scrape);
    }
  }
}

function holdsSlot(attempt: Attempt): boolean {
  if (attempt.phase === 'starting') return attempt.intentAt !== null;
  return attempt.phase === 'running' || attempt.phase === 'aborting';
}

const bucketsATurn = 64;
/** The bucket a process looks at next. */
const nextBuckets = new WeakMap<WorkerContext, number>();

/** Waiting scrapes whose public job was removed: nobody else would ever settle them. */
export async function reapWaiting(ctx: WorkerContext): Promise<void> {
  for (let turn = 0; turn < bucketsATurn; turn += 1) {
    const bucket = nextBuckets.get(ctx) ?? 0;
    nextBuckets.set(ctx, (bucket + 1) % ctx.keys.waitingBuckets);
    for (const scrape of await ctx.redis.hkeys(ctx.keys.waitingBucket(bucket))) {
      const named = splitJobKey(scrape);
      if (named === null || (await ctx.queues.publicExists(scrape))) continue;
      const { attempt } = await ctx.store.load(scrape);
      if (attempt === null || phaseRank(attempt.phase) > phaseRank('queued')) continue;
      const servers = Object.keys(ctx.config.servers);
      const subject = {
        ...named,
        server: servers.length === 1 ? (servers[0] ?? '') : '',
        tool: '',
        meta: null,
      };
      await publish(ctx, attempt, subject, decide('cancelled', removed, ctx.now()), 0);
    }
  }
}

const windowMs = 10 * 60_000;
const clockSlackMs = 120_000;
const listsAtMost = 50;
const readAtOnce = 64;

type ListedRun = RunListing['runs'][number];

/** Runs that one process need not look at again, and when it saw them. */
class Sightings {
  readonly examined = new Map<string, number>();

  forgetOld(now: number): void {
    for (const [key, at] of this.examined) if (now - at > 2 * windowMs) this.examined.delete(key);
  }
}

const sightings = new WeakMap<WorkerContext, Sightings>();

/**
 * Runs under way that no scrape owns though one of ours asked for just that: the second of two runs the server made of one
 * call (design B4), or one whose attempt had to give up. They are aborted. Others may use the same account: a run is ours
 * only when it is of the same Actor, began about when a scrape of ours was started, and has the very INPUT of that scrape.
 */
export async function reapRuns(ctx: WorkerContext, server: string): Promise<void> {
  const seen = sightings.get(ctx) ?? new Sightings();
  sightings.set(ctx, seen);
  seen.forgetOld(ctx.now());
  if ((await ctx.redis.exists(ctx.keys.recent(server))) === 0) return;
  const described = await ctx.server(server).port.describe({ signal: ctx.stopping });
  if (!described.ok || !described.value.canList) return;
  // Only those under way: among thousands that ended, a second run would lie beyond the lists of one turn.
  for (const status of ['RUNNING', 'READY'] as const) await lookThrough(ctx, seen, server, status);
}

async function lookThrough(
  ctx: WorkerContext,
  seen: Sightings,
  server: string,
  status: 'RUNNING' | 'READY',
): Promise<void> {
  const { port } = ctx.server(server);
  for (let page = 0; page < listsAtMost; page += 1) {
    const request = { offset: page * 10, limit: 10, status };
    let listed = await port.listRuns(request, ctx.stopping);
    // One bad answer is not worth a whole turn, which a second run would go on for.
    if (!listed.ok && listed.failure.refusal === 'none' && listed.failure.kind !== 'timeout') {
      listed = await port.listRuns(request, ctx.stopping);
    }
    if (!listed.ok) return;
    for (const run of listed.value.runs) await examine(ctx, seen, server, run);
    const oldest = listed.value.runs.at(-1)?.startedAtMs ?? 0;
    if (listed.value.runs.length < 10 || oldest < ctx.now() - windowMs) return;
  }
}

async function examine(ctx: WorkerContext, seen: Sightings, server: string, run: ListedRun): Promise<void> {
  if (run.status !== 'READY' && run.status !== 'RUNNING') return;
  const { account } = ctx.server(server);
  const key = `${account} ${run.runId}`;
  if (seen.examined.has(key) || run.storeId === null || run.startedAtMs === null) return;
  if ((await ctx.redis.exists(ctx.keys.claim(account, run.runId))) === 1) {
    seen.examined.set(key, ctx.now());
    return;
  }
  const sighted = ctx.keys.sighted(account, run.runId);
  await ctx.redis.set(sighted, ctx.now(), 'PX', 2 * windowMs, 'NX');
  if (ctx.now() - Number(await ctx.redis.get(sighted)) < ctx.timing.orphanAfterMs) return;
  const verdict = await isOurs(ctx, server, run, run.storeId, run.startedAtMs);
  if (verdict === 'unknown') return;
  seen.examined.set(key, ctx.now());
  if (verdict === 'no') return;
  ctx.log
    .module('fleet')
    .warn({ event: 'orphan.found', runId: run.runId, server }, 'a run without an owner is aborted');
  ctx.metrics.orphanRun(server, 'found');
  await ctx.queues.addOrphan(server, run.runId);
}

/** `unknown`: something could not be read, or an attempt still looks for this run; asked again next time. */
async function isOurs(
  ctx: WorkerContext,
  server: string,
  run: ListedRun,
  storeId: string,
  startedAt: number,
): Promise<'yes' | 'no' | 'unknown'> {
  const { port } = ctx.server(server);
  const input = await readInput(ctx, server, storeId);
  const looked = await port.poll(run.runId, { waitSecs: 0, signal: ctx.stopping });
  if (input === undefined || !looked.ok || looked.value.actor === undefined) return 'unknown';
  let verdict: 'yes' | 'no' = 'no';
  const about = await ctx.recent.between(server, startedAt - clockSlackMs, startedAt + clockSlackMs);
  for await (const { attempt, asked } of startedAbout(ctx, about)) {
    // Its answer came, and was saved, while this was being looked into.
    if (attempt.runId === run.runId) return 'no';
    if (asked === null || asked.tool !== looked.value.actor || !sameInput(asked.input, input)) continue;
    // It may be the run this attempt looks for: reconciliation decides, not the reaper.
    if (attempt.phase === 'starting' && attempt.intentAt !== null) return 'unknown';
    const own = attempt.storeId === null ? asked.input : await readInput(ctx, server, attempt.storeId);
    if (own === undefined) return 'unknown';
    if (equalInput(own, input)) verdict = 'yes';
  }
  return verdict;
}

/** What scrapes asked for. Four minutes of starts may be a thousand, and a second run costs as long as they are read. */
async function* startedAbout(ctx: WorkerContext, scrapes: readonly string[]) {
  for (let from = 0; from < scrapes.length; from += readAtOnce) {
    const some = scrapes.slice(from, from + readAtOnce).map(async (scrape) => {
      const { attempt } = await ctx.store.load(scrape);
      if (attempt === null) return null;
      return { attempt, asked: attempt.asked ?? (await readStartJob(ctx, attempt)).scrape };
    });
    for (const started of await Promise.all(some)) if (started !== null) yield started;
  }
}

async function readInput(ctx: WorkerContext, server: string, storeId: string): Promise<unknown> {
  const record = await ctx.server(server).port.readRecord(storeId, 'INPUT', ctx.stopping);
  return record.ok && record.value.kind === 'json' ? parse(record.value.body) : undefined;
}
