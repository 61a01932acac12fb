import { CallEnded } from './call-context.js';

/** One abort signal a call: its timeout, its caller's abort, and its session's end. */
export class CallClock {
  readonly end: (reason: CallEnded) => void;
  readonly signal: AbortSignal;
  /** Counts the timeout from now on: the call is sent. */
  readonly restart: () => void;
  readonly stop: () => void;

  /** `waitMs`: for the wait before the call is sent, where that is shorter than the timeout. */
  constructor(timeoutMs: number, caller?: AbortSignal, waitMs = timeoutMs) {
    const controller = new AbortController();
    this.signal = controller.signal;
    this.end = (reason) => controller.abort(reason);
    const late = () => this.end(new CallEnded('timeout', `No answer within ${timeoutMs} ms.`));
    let timer = setTimeout(late, Math.max(0, Math.min(waitMs, timeoutMs)));
    const onAbort = () => this.end(new CallEnded('aborted', 'The call was given up by its caller.'));
    if (caller?.aborted) onAbort();
    else caller?.addEventListener('abort', onAbort, { once: true });
    this.restart = () => {
      clearTimeout(timer);
      timer = setTimeout(late, timeoutMs);
    };
    this.stop = () => {
      clearTimeout(timer);
      caller?.removeEventListener('abort', onAbort);
    };
  }
}

/** The promise, unless the signal comes first. */
export async function raced<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) throw signal.reason;
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (onAbort) signal.removeEventListener('abort', onAbort);
  }
}

/** Bounds calls in flight; first come, first served. */
export class Places {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  take(signal: AbortSignal): Promise<void> {
    if (this.tryTake()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.delete(granted);
        reject(signal.reason);
      };
      const granted = () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(granted);
    });
  }

  release(): void {
    for (const granted of this.#waiting) {
      this.#waiting.delete(granted);
      granted();
      return;
    }
    this.#free += 1;
  }
}
