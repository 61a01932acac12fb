import type { Redis } from 'ioredis';

/** A job as it stands in the intake. */
export interface IntakeEntry {
  /** Of this entry and no other, for as long as it is in hand, whichever process has it. */
  readonly ref: string;
  /** The job; of one that is far too large only the beginning. */
  readonly text: string;
  /** Of the whole job; null when the entry has no field `job` (`text` is then what it has instead). */
  readonly bytes: number | null;
}

/** What one turn takes at most. */
export interface TakeBounds {
  readonly entries: number;
  /** Nothing more is taken once this much is in hand, so that a row of huge messages does not fill the memory. */
  readonly bytes: number;
  /** A longer job is cut to `excerpt` inside Redis and never travels. */
  readonly longest: number;
}

/** Of a job that is rejected this much is kept, enough to recognise it. Characters, and bytes of one that was cut. */
export const excerpt = 2_000;

/**
 * One way in besides BullMQ (design A7). What is taken stays in Redis under this process's name until `done`; what a
 * process that died, or a turn that failed, had in hand is taken again, with the same `ref`.
 */
export interface IntakeSource {
  take(bounds: TakeBounds): Promise<IntakeEntry[]>;
  /** The entries of the last `take` are accepted or rejected. */
  done(entries: readonly IntakeEntry[]): Promise<void>;
  /** The last turn failed: what it had in hand comes again with the next `take`. */
  failed(): void;
  /** This process takes no more. */
  leave(): Promise<void>;
}

export type Script = (...args: (string | number)[]) => Promise<unknown>;

/** Adds a script to a connection; calling it twice does no harm. */
export function script(redis: Redis, name: string, numberOfKeys: number, lua: string): Script {
  if (!(name in redis)) redis.defineCommand(name, { numberOfKeys, lua });
  const commands = redis as unknown as Record<string, Script>;
  return (...args) => (commands[name] as Script).apply(redis, args);
}

/** Scripts answer with ref, bytes (-1: no job), text in turn. */
export function readEntries(reply: unknown): IntakeEntry[] {
  const flat = reply as string[];
  const entries: IntakeEntry[] = [];
  for (let index = 0; index + 2 < flat.length; index += 3) {
    const bytes = Number(flat[index + 1]);
    entries.push({
      ref: flat[index] as string,
      bytes: bytes < 0 ? null : bytes,
      text: flat[index + 2] as string,
    });
  }
  return entries;
}
