import type { Timing } from '../../workers/timing.js';
import type { Guard } from './guards.js';

/** What a worker process of the chaos run is told by its first argument. */
export interface WorkerSettings {
  readonly config: string;
  readonly redis: string;
  readonly log: string;
  readonly timing: Partial<Timing>;
  readonly without: Guard | null;
  /** Chance that a hand-on is made twice, as after a reply that was lost. */
  readonly repeatHandOns: number;
}

/** Exit code of a process that could not begin, because Redis or the disk was away: it is started again. */
export const notStarted = 3;
