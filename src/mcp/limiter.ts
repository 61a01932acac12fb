import type { Operation } from './port.js';

/**
 * Keeps the request rate of one server. Over any window of T seconds all processes that share the tokens make at most
 * `requestsPerSecond * T + burst` calls, where `burst` is what a tenth of a second allows, at least 1. (A call counts
 * when its token is granted; `notifications/initialized` and the DELETE of a session are not calls.)
 */
export interface RequestLimiter {
  /**
   * Resolves when the call may be made. Within a process the order is abort, poll, read, start; connecting and listing
   * go first, since others wait for them. Rejects with the signal's reason, or with a `LimiterFull` error.
   */
  acquire(operation: Operation, signal?: AbortSignal): Promise<void>;
  /** The server asked for quiet: nobody, in any process, gets a token for this many ms (at most 10 minutes). */
  penalise(ms: number): void;
  /** Rejects who waits and who comes later. */
  close(): void;
}

/** Where the tokens are counted: one process's memory, or Redis for all of them. */
export interface TokenSource {
  /** Takes up to `wanted` tokens now; with fewer granted, `waitMs` is when it is worth asking again. */
  take(wanted: number): Promise<{ readonly granted: number; readonly waitMs: number }>;
  coolDown(ms: number): Promise<void>;
}

/** Nobody waits any more: the queue is full, or the limiter is closed. */
export class LimiterFull extends Error {
  override readonly name = 'LimiterFull';
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** Tokens asked for at once: one round trip serves a whole crowd, and other processes still get their turn. */
const leaseMax = 100;
const maxCoolDownMs = 600_000;
const sourceRetryMs = 250;

function rankOf(operation: Operation): 0 | 1 | 2 | 3 {
  switch (operation) {
    case 'connect':
    case 'list_tools':
    case 'abort':
      return 0;
    case 'poll':
      return 1;
    case 'read':
    case 'record':
    case 'reconcile':
      return 2;
    case 'start':
      return 3;
    default: {
      const never: never = operation;
      return never;
    }
  }
}

/** Tokens a server with this rate may hand out at once. */
export function burstOf(requestsPerSecond: number): number {
  return Math.max(1, Math.floor(requestsPerSecond / 10));
}

/** `maxWaiting` bounds the queue of this process; past it `acquire` rejects at once. */
export function createLimiter(
  source: TokenSource,
  options: { maxWaiting?: number; onSourceError?: (error: unknown) => void } = {},
): RequestLimiter {
  return new QueueingLimiter(
    source,
    options.maxWaiting ?? 10_000,
    options.onSourceError ?? (() => undefined),
  );
}

/** Tokens leave for waiters in the moment they are granted; none are kept, so no stale ones can add up to a burst. */
class QueueingLimiter implements RequestLimiter {
  readonly #source: TokenSource;
  readonly #maxWaiting: number;
  readonly #onSourceError: (error: unknown) => void;
  readonly #ranks: readonly Set<Waiter>[] = [new Set(), new Set(), new Set(), new Set()];
  #waiting = 0;
  #pumping = false;
  #closed = false;
  #wake: (() => void) | null = null;

  constructor(source: TokenSource, maxWaiting: number, onSourceError: (error: unknown) => void) {
    this.#source = source;
    this.#maxWaiting = maxWaiting;
    this.#onSourceError = onSourceError;
  }

  acquire(operation: Operation, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#closed) return Promise.reject(new LimiterFull('The rate limiter is closed.'));
    if (this.#waiting >= this.#maxWaiting) {
      return Promise.reject(new LimiterFull(`${this.#waiting} calls wait for their turn already.`));
    }
    const rank = this.#ranks[rankOf(operation)] as Set<Waiter>;
    return new Promise((resolve, reject) => {
      const leave = () => {
        if (rank.delete(waiter)) this.#waiting -= 1;
        signal?.removeEventListener('abort', onAbort);
      };
      const onAbort = () => waiter.reject(signal?.reason);
      const waiter: Waiter = {
        resolve: () => {
          leave();
          resolve();
        },
        reject: (reason) => {
          leave();
          reject(reason);
        },
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      rank.add(waiter);
      this.#waiting += 1;
      void this.#pump();
    });
  }

  penalise(ms: number): void {
    const bounded = Math.min(maxCoolDownMs, Math.ceil(ms));
    if (this.#closed || !(bounded > 0)) return;
    this.#source.coolDown(bounded).catch(this.#onSourceError);
  }

  close(): void {
    this.#closed = true;
    this.#wake?.();
    for (const rank of this.#ranks) {
      for (const waiter of rank) waiter.reject(new LimiterFull('The rate limiter is closed.'));
    }
  }

  async #pump(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    while (this.#waiting > 0 && !this.#closed) {
      const wanted = Math.min(this.#waiting, leaseMax);
      const { granted, waitMs } = await this.#source.take(wanted).catch((error: unknown) => {
        this.#onSourceError(error);
        return { granted: 0, waitMs: sourceRetryMs };
      });
      for (let n = 0; n < granted; n += 1) this.#next()?.resolve();
      if (granted < wanted && this.#waiting > 0) await this.#sleep(waitMs);
    }
    this.#pumping = false;
  }

  #next(): Waiter | undefined {
    for (const rank of this.#ranks) {
      for (const waiter of rank) return waiter;
    }
    return undefined;
  }

  async #sleep(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      timer = setTimeout(resolve, Math.max(1, Math.ceil(ms)));
    });
    clearTimeout(timer);
    this.#wake = null;
  }
}

/**
 * Tokens of one process, by the generic cell rate algorithm: `due` is when the tokens handed out so far are paid off;
 * it may lie at most `burst` gaps ahead of now.
 */
export function memoryTokens(
  requestsPerSecond: number,
  now: () => number = () => performance.now(),
): TokenSource {
  const gap = 1000 / requestsPerSecond;
  const ahead = gap * burstOf(requestsPerSecond);
  let due = 0;
  let quietUntil = 0;
  return {
    async take(wanted) {
      const at = now();
      if (at < quietUntil) return { granted: 0, waitMs: quietUntil - at };
      due = Math.max(due, at);
      const granted = Math.min(wanted, Math.floor((at + ahead - due) / gap + 1e-6));
      due += granted * gap;
      return { granted, waitMs: granted < wanted ? due + gap - (at + ahead) : 0 };
    },
    async coolDown(ms) {
      quietUntil = Math.max(quietUntil, now() + ms);
    },
  };
}
