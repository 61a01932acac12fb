import { openDaemon } from './host.js';
import type { Moment } from './points.js';
import { setTrap } from './trap.js';

export interface VictimCase {
  readonly config: string;
  readonly moment: Moment;
}

/**
 * A process with a daemon a case. Each comes to its moment and stands still there; with the last of them the process
 * kills itself, so that every case sees its worker die at exactly its moment.
 */
const cases = JSON.parse(process.argv[2] ?? '[]') as VictimCase[];
const waiting = new Set(cases.map(({ config }) => config));
process.once('disconnect', () => process.exit(1));
for (const { config, moment } of cases) {
  const { daemon } = openDaemon(config);
  setTrap(daemon, moment, () => {
    waiting.delete(config);
    process.send?.({ reached: config });
    if (waiting.size === 0) process.kill(process.pid, 'SIGKILL');
  });
  await daemon.start();
}
