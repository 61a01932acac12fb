import type { AttemptPatch, AttemptStore } from '../../src/queue/attempt-store.js';
import type { Queues } from '../../src/queue/queues.js';
import { pageLimit } from '../../src/run/schedule.js';
import type { Sink } from '../../src/sinks/contract.js';
import type { Daemon } from '../../workers/daemon.js';

/** The guards whose absence the checker has to notice. */
export const guards = ['intent', 'fixed-ids', 'page-plan', 'lock-check', 'second-read'] as const;
export type Guard = (typeof guards)[number];

export function isGuard(name: string): name is Guard {
  return (guards as readonly string[]).includes(name);
}

/** Switches one guard of this process off, by wrapping what the daemon holds; the product has no switch for it. */
export function switchOff(daemon: Daemon, guard: Guard): void {
  const { store, queues } = daemon.ctx;
  switch (guard) {
    case 'intent':
      withoutIntent(store);
      return;
    case 'fixed-ids':
      withoutFixedIds(queues);
      return;
    case 'page-plan':
      withoutPagePlan(store, daemon.ctx.config.results.pageBytes);
      withoutDurableWord(daemon.ctx.sink);
      return;
    case 'lock-check':
      withoutLockCheck(daemon);
      return;
    case 'second-read':
      withoutSecondRead(store, queues);
      return;
    default:
      guard satisfies never;
  }
}

/** The start is not remembered before it is made, so that after a crash it is simply made again. */
function withoutIntent(store: AttemptStore): void {
  /** For the look that follows the writing, which only goes on with an intent of its own. */
  const written = new Map<string, number>();
  const advance = store.advance.bind(store);
  store.advance = (attempt, lock, from, phase, patch, event) => {
    if (phase !== 'starting') return advance(attempt, lock, from, phase, patch, event);
    if (typeof patch.intentAt === 'number') written.set(attempt.scrape, patch.intentAt);
    return advance(attempt, lock, from, phase, { ...patch, intentAt: null }, event);
  };
  const load = store.load.bind(store);
  store.load = async (scrape) => {
    const loaded = await load(scrape);
    const intentAt = written.get(scrape);
    written.delete(scrape);
    if (loaded.attempt === null || intentAt === undefined) return loaded;
    return { ...loaded, attempt: { ...loaded.attempt, intentAt } };
  };
  const saveRun = store.saveRun.bind(store);
  store.saveRun = (attempt, server, _intentAt, ...rest) => saveRun(attempt, server, null, ...rest);
}

/** Each hand-on makes a job of its own: the number is padded at random, which reads as the same attempt. */
function withoutFixedIds(queues: Queues): void {
  for (const queue of queues.all) {
    const add = queue.add.bind(queue);
    queue.add = (name, data, options) => {
      const jobId = options?.jobId?.replace(
        /-(\d+)-(start|poll|pages|abort)$/,
        (_, n: string, stage: string) =>
          `-${n.padStart(n.length + Math.floor(Math.random() * (7 - n.length)), '0')}-${stage}`,
      );
      return add(name, data, jobId === undefined ? options : { ...options, jobId });
    };
  }
}

/** No slice is saved: whoever goes on cuts pages to a size of its own, from what was counted so far. */
function withoutPagePlan(store: AttemptStore, pageBytes: number): void {
  const advance = store.advance.bind(store);
  store.advance = (attempt, lock, from, phase, patch, event) =>
    advance(attempt, lock, from, phase, without(patch, 'slice'), event);
  const load = store.load.bind(store);
  store.load = async (scrape) => {
    const loaded = await load(scrape);
    const { attempt } = loaded;
    if (attempt === null || attempt.pages === 0) return loaded;
    const slice = { index: attempt.pages, offset: attempt.items, limit: pageLimit(attempt, pageBytes) };
    return { ...loaded, attempt: { ...attempt, slice } };
  };
}

/** The plan's other half: what was read is taken for what lies on disk under that number. */
function withoutDurableWord(sink: Sink): void {
  const writePage = sink.writePage.bind(sink);
  sink.writePage = async (target, page) => ({
    ...(await writePage(target, page)),
    lines: page.lines.length,
  });
}

/** A worker that was frozen past its lock writes all the same. */
function withoutLockCheck(daemon: Daemon): void {
  const redis = daemon.ctx.redis as unknown as {
    scriptsSet: Record<string, { lua: string; numberOfKeys: number }>;
    defineCommand(name: string, definition: { lua: string; numberOfKeys: number }): void;
  };
  const script = redis.scriptsSet.trawlAdvance;
  const check = "if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end";
  if (script === undefined || !script.lua.includes(check)) throw new Error('trawlAdvance checks no lock');
  const { numberOfKeys } = script;
  redis.defineCommand('trawlAdvance', { lua: script.lua.replace(check, ''), numberOfKeys });
}

/** The first read counts as proof, however soon after the run's end it was made. */
function withoutSecondRead(store: AttemptStore, queues: Queues): void {
  const advance = store.advance.bind(store);
  store.advance = (attempt, lock, from, phase, patch, event) =>
    advance(
      attempt,
      lock,
      from,
      phase,
      typeof patch.endedAt === 'number' ? { ...patch, endedAt: patch.endedAt - 60_000 } : patch,
      event,
    );
  const addStage = queues.addStage.bind(queues);
  queues.addStage = (stage, attempt, server, options = {}) =>
    addStage(stage, attempt, server, stage === 'pages' ? { ...options, delayMs: 0 } : options);
}

function without(patch: AttemptPatch, name: keyof AttemptPatch): AttemptPatch {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => key !== name));
}
