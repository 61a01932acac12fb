import type { Redis } from 'ioredis';
import { attemptScripts } from './scripts/attempts.js';
import { holdScripts } from './scripts/holds.js';
import { publicJobScripts } from './scripts/public-jobs.js';
import { slotScripts } from './scripts/slots.js';

/**
 * The Lua scripts. Each reads the time from Redis, so that the clocks of processes do not matter, and each leaves
 * nothing half done. An attempt's hash is only written under the lock of the job that works on it: a worker that was
 * frozen past its lock finds the lock gone and changes nothing (BullMQ's own `updateData` checks no lock).
 */
const scripts = { ...attemptScripts, ...publicJobScripts, ...slotScripts, ...holdScripts } as const;

type ScriptName = keyof typeof scripts;
type Scripted = Record<ScriptName, (...args: (string | number)[]) => Promise<unknown>>;

/** Adds the scripts to a connection as commands. Calling it twice on one connection does no harm. */
export function withScripts(redis: Redis): Redis & Scripted {
  for (const [name, { keys, lua }] of Object.entries(scripts)) {
    if (!(name in redis)) redis.defineCommand(name, { numberOfKeys: keys, lua });
  }
  return redis as Redis & Scripted;
}

export type ScriptedRedis = ReturnType<typeof withScripts>;
