import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Timing } from '../../workers/timing.js';
import type { Bench } from '../workers/harness.js';
import type { ChildSettings } from './worker.child.js';

const entry = fileURLToPath(new URL('worker.child.ts', import.meta.url));

/** Starts a worker in a process of its own, in front of the same Redis and server; resolves when it works. */
export async function spawnWorker(
  bench: Bench,
  timing: Partial<Timing>,
  crashes: ChildSettings['crashes'] = {},
): Promise<ChildProcess> {
  const settings: ChildSettings = {
    config: `${bench.dir}/trawl.yaml`,
    dir: bench.dir,
    redis: bench.redis.url,
    timing,
    crashes,
  };
  const child = spawn(process.execPath, ['--import', 'tsx', entry, JSON.stringify(settings)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  bench.onClose(() => child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

export async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}
