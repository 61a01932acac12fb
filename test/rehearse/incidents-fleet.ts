import { minutes } from '../../grafana/src/scale.js';
import type { Incident, Scene } from './incident.js';
import { maxMemory } from './stack.js';

const fillers = 'filler:';
const fillerBytes = 256 * 1024;

/** Fills Redis up to a share of its memory with keys of somebody else. */
async function fill({ stack }: Scene, share: number, expires: boolean): Promise<void> {
  const { client } = stack;
  const text = 'x'.repeat(fillerBytes);
  const read = async (name: string) => {
    const info = await client.info('memory');
    return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
  };
  for (let index = 0; index < 2_000; index += 1) {
    if ((await read('used_memory')) > share * (await read('maxmemory'))) return;
    const key = `${fillers}${index}`;
    if (expires) await client.set(key, text, 'EX', 3_600);
    else await client.set(key, text);
  }
}

async function removeFillers({ stack }: Scene): Promise<void> {
  const keys = await stack.client.keys(`${fillers}*`);
  if (keys.length > 0) await stack.client.del(...keys);
}

/** What goes wrong under all servers, so one after another. */
export const fleetIncidents: readonly Incident[] = [
  {
    name: 'workers-down',
    what: 'every worker is killed, with a backlog',
    expected: 'TrawlWorkersDown',
    scope: 'fleet',
    span: minutes(10),
    everyMs: null,
    cause: async ({ stack, traffic }) => {
      await traffic.submit(60);
      await Promise.all(stack.workers.map((worker) => worker.end('SIGKILL')));
    },
    heal: async ({ stack }) => {
      await Promise.all(stack.workers.map((worker) => worker.start()));
    },
  },
  {
    name: 'one-worker-dies',
    what: 'one of two workers is killed and stays away',
    expected: null,
    scope: 'fleet',
    span: minutes(15),
    everyMs: null,
    cause: ({ stack }) => stack.workers[0]?.end('SIGKILL'),
    heal: ({ stack }) => stack.workers[0]?.start(),
  },
  {
    name: 'worker-stuck',
    what: "one worker's connections to Redis stand still; it looks alive",
    expected: 'TrawlWorkerStuck',
    scope: 'fleet',
    span: minutes(5),
    everyMs: null,
    cause: ({ stack }) => stack.workers[1]?.redis.stall(1),
    heal: ({ stack }) => stack.workers[1]?.redis.resume(),
  },
  {
    name: 'redis-down',
    what: 'Redis is killed',
    expected: 'TrawlRedisUnreachable',
    scope: 'fleet',
    span: minutes(10),
    everyMs: null,
    cause: ({ stack }) => stack.redis.down(),
    heal: ({ stack }) => stack.redis.up(),
  },
  {
    name: 'redis-nearly-full',
    what: 'Redis fills up to 95 % of maxmemory',
    expected: 'TrawlRedisNearlyFull',
    scope: 'fleet',
    span: minutes(10),
    everyMs: null,
    cause: (scene) => fill(scene, 0.95, false),
    heal: removeFillers,
  },
  {
    name: 'sink-refuses',
    what: 'the directory of results is gone',
    expected: 'TrawlSinkRefuses',
    scope: 'fleet',
    span: minutes(15),
    everyMs: null,
    cause: ({ stack }) => stack.disk.refuse(),
    heal: ({ stack }) => stack.disk.heal(),
  },
  {
    name: 'not-accepted',
    what: 'somebody pauses the public queue in a board',
    expected: 'TrawlBacklogNotAccepted',
    scope: 'fleet',
    span: minutes(10),
    everyMs: null,
    cause: ({ stack }) => stack.queue.pause(),
    heal: ({ stack }) => stack.queue.resume(),
  },
  {
    name: 'series-gone',
    what: 'workers are restarted with a trawl.yaml that lacks a server',
    expected: 'TrawlSeriesGone',
    scope: 'fleet',
    span: minutes(5),
    everyMs: null,
    before: ({ traffic }) => traffic.submit(3),
    cause: ({ stack, server }) => stack.restartWorkers([server]),
    heal: ({ stack }) => stack.restartWorkers(),
  },
  // The last one: what Redis throws away may be ours.
  {
    name: 'redis-evicts',
    what: 'maxmemory-policy is volatile-lru, and Redis is full',
    expected: 'TrawlRedisEvicts',
    scope: 'fleet',
    span: minutes(5),
    everyMs: null,
    cause: async (scene) => {
      await scene.stack.client.config('SET', 'maxmemory-policy', 'volatile-lru');
      await fill(scene, 0.99, true);
      await scene.stack.client.config('SET', 'maxmemory', '100mb');
    },
    heal: async (scene) => {
      await removeFillers(scene);
      await scene.stack.client.config('SET', 'maxmemory', maxMemory);
      await scene.stack.client.config('SET', 'maxmemory-policy', 'noeviction');
    },
  },
];
