/** One look at one thing: `message` says what is wrong, or right, in a sentence without secrets. */
export interface HealthCheck {
  readonly ok: boolean;
  readonly message: string;
}

export interface HealthReport {
  readonly ok: boolean;
  readonly checks: Readonly<Record<string, HealthCheck>>;
}

export interface HealthSource {
  check(): Promise<HealthReport>;
}

/** Longest a check may take; a probe that hangs tells an orchestrator less than one that fails. */
const checkTimeoutMs = 2000;

/** Runs named checks side by side; one that throws or hangs is a failed one. */
export function healthSource(checks: Readonly<Record<string, () => Promise<HealthCheck>>>): HealthSource {
  return {
    async check() {
      const entries = await Promise.all(
        Object.entries(checks).map(async ([name, run]) => [name, await bounded(run)] as const),
      );
      return { ok: entries.every(([, check]) => check.ok), checks: Object.fromEntries(entries) };
    },
  };
}

async function bounded(run: () => Promise<HealthCheck>): Promise<HealthCheck> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<HealthCheck>((resolve) => {
    timer = setTimeout(
      () => resolve({ ok: false, message: `no answer within ${checkTimeoutMs / 1000} s` }),
      checkTimeoutMs,
    );
  });
  try {
    return await Promise.race([run(), late]);
  } catch {
    // The error's text may hold an address or a secret; it is logged where it happens.
    return { ok: false, message: 'the check failed; see the log' };
  } finally {
    clearTimeout(timer);
  }
}

/** Redis answers a PING. */
export function redisCheck(ping: () => Promise<unknown>): () => Promise<HealthCheck> {
  return async () => {
    try {
      await ping();
      return { ok: true, message: 'answers' };
    } catch {
      return { ok: false, message: 'does not answer' };
    }
  };
}

/**
 * Every queue this process works on was asked for work lately. After a failover a worker can look alive and fetch nothing, so
 * the age of the last fetch is what counts. No queue at all is fine: nothing has begun, or all of it has been closed.
 */
export function fetchCheck(options: {
  /** Milliseconds since 1970, by queue. */
  readonly lastFetch: () => ReadonlyMap<string, number>;
  readonly now: () => number;
  readonly maxAgeMs: number;
}): () => Promise<HealthCheck> {
  return async () => {
    const now = options.now();
    const late = [...options.lastFetch()]
      .filter(([, at]) => now - at > options.maxAgeMs)
      .map(([queue, at]) => `${queue} not fetched from for ${Math.round((now - at) / 1000)} s`);
    return late.length === 0
      ? { ok: true, message: 'every queue was fetched from lately' }
      : { ok: false, message: late.slice(0, 10).join('; ') };
  };
}
