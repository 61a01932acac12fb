import type { Config } from '../config.js';
import type { Logger } from '../logger.js';
import type { AttemptStore } from '../queue/attempt-store.js';
import type { Holds } from '../queue/holds.js';
import type { Keys } from '../queue/names.js';
import type { Queues } from '../queue/queues.js';
import type { ScriptedRedis } from '../queue/scripts.js';
import type { Sink } from '../sinks/contract.js';

/** What the page, the API and the queue board look at and change: the same parts that the commands have. */
export interface HttpParts {
  readonly config: Config;
  readonly redis: ScriptedRedis;
  readonly keys: Keys;
  readonly queues: Queues;
  readonly store: AttemptStore;
  readonly holds: Holds;
  readonly sink: Pick<Sink, 'find'>;
  /** Names of the configured servers. */
  readonly servers: readonly string[];
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  now(): number;
}
