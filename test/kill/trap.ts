import type { Daemon } from '../../workers/daemon.js';
import type { Moment } from './points.js';

/**
 * Stops a daemon at a moment of its work: `onReached` is called, and neither that operation nor any after it goes on until
 * its process is killed. The product knows nothing of it.
 */
export function setTrap(daemon: Daemon, { operation, when, nth = 1 }: Moment, onReached: () => void): void {
  let calls = 0;
  let reached = false;
  const standStill = () => {
    if (!reached) onReached();
    reached = true;
    return new Promise<never>(() => {});
  };
  const trapped = async <T>(name: string, call: () => Promise<T>): Promise<T> => {
    const hit = name === operation && ++calls === nth;
    if (reached || (hit && when === 'before')) return standStill();
    const result = await call();
    return reached || hit ? standStill() : result;
  };
  const { ctx } = daemon;
  const { port } = ctx.server('apify');
  wrapAll(port, ['start', 'poll', 'readPage', 'abort'], 'port', trapped);
  wrapAll(ctx.sink, ['writePage', 'settle', 'find'], 'sink', trapped);
  wrapAll(ctx.store, ['saveRun'], 'store', trapped);
  const advance = ctx.store.advance.bind(ctx.store);
  ctx.store.advance = (attempt, lock, from, phase, patch, event) =>
    trapped(`advance:${phase ?? 'stay'}`, () => advance(attempt, lock, from, phase, patch, event));
  const addStage = ctx.queues.addStage.bind(ctx.queues);
  ctx.queues.addStage = (stage, ...rest) => trapped(`add:${stage}`, () => addStage(stage, ...rest));
  const publish = ctx.redis.trawlDone.bind(ctx.redis);
  ctx.redis.trawlDone = (...args) => trapped('publish', () => publish(...args));
}

type Trapped = <T>(name: string, call: () => Promise<T>) => Promise<T>;

function wrapAll<T extends object>(
  target: T,
  names: readonly (keyof T & string)[],
  kind: string,
  trapped: Trapped,
) {
  for (const name of names) {
    const method = (target[name] as (...args: unknown[]) => Promise<unknown>).bind(target);
    const wrapped = (...args: unknown[]) => trapped(`${kind}.${name}`, () => method(...args));
    Object.defineProperty(target, name, { value: wrapped });
  }
}
