import type { Config } from '../src/config.js';
import type { Logger } from '../src/logger.js';
import type { ScrapeServer } from '../src/mcp/port.js';
import type { Metrics } from '../src/metrics/index.js';
import type { AttemptStore } from '../src/queue/attempt-store.js';
import type { Holds } from '../src/queue/holds.js';
import type { Keys } from '../src/queue/names.js';
import type { Queues } from '../src/queue/queues.js';
import type { ScriptedRedis } from '../src/queue/scripts.js';
import type { Slots } from '../src/queue/slots.js';
import type { Sink } from '../src/sinks/contract.js';
import type { Tracing } from '../src/tracing/tracing.js';
import type { Brake } from './brake.js';
import type { Liveness } from './liveness.js';
import type { RecentStarts } from './recent-starts.js';
import type { RefusalStreaks } from './refusal-streaks.js';
import type { RunWalks } from './run-walks.js';
import type { Timing } from './timing.js';

export interface ServerParts {
  readonly port: ScrapeServer;
  readonly slots: Slots;
  /** Two configured servers at one address see the same runs: claims are made per address, not per name. */
  readonly account: string;
}

/** What every worker of a process shares. */
export interface WorkerContext {
  readonly config: Config;
  readonly redis: ScriptedRedis;
  readonly keys: Keys;
  readonly queues: Queues;
  readonly store: AttemptStore;
  readonly holds: Holds;
  readonly sink: Sink;
  readonly metrics: Metrics;
  readonly tracing: Tracing;
  /** Of the module `scrape`; `log.module` has the others. */
  readonly log: Logger;
  readonly liveness: Liveness;
  readonly refusals: RefusalStreaks;
  readonly recent: RecentStarts;
  readonly walks: RunWalks;
  readonly brake: Brake;
  readonly timing: Timing;
  /** Unique to the process. */
  readonly owner: string;
  server(name: string): ServerParts;
  /** Cancels one scrape, from inside the fleet. */
  cancel(scrape: string): Promise<void>;
  /** Fires when calls in flight, starts aside, have to end because the process stops. */
  readonly stopping: AbortSignal;
  now(): number;
}
