import { DelayedError, UnrecoverableError, WaitingChildrenError, WaitingError } from 'bullmq';
import { TrawlError } from '../src/errors.js';

/** What a processor throws once it has told BullMQ where its job goes on. */
export function isFlow(error: unknown): boolean {
  return (
    error instanceof DelayedError || error instanceof WaitingError || error instanceof WaitingChildrenError
  );
}

/** A processor's decision that its job has failed, the only one there is. */
export function isDecision(error: unknown): boolean {
  return error instanceof UnrecoverableError;
}

/** The job was removed, or its lock is gone or another's: nobody here is at fault, and nobody here may touch it. */
export function isOutOfHand(error: unknown): boolean {
  if (error instanceof TrawlError) return error.code === 'lock_lost';
  // BullMQ's codes: missing key, missing lock, not in the active state, lock mismatch.
  return error instanceof Error && [-1, -2, -3, -6].includes(Number((error as { code?: unknown }).code));
}

/** BullMQ's code for a job that has children it has not heard of. */
export function hasPendingChildren(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === -4;
}
