/**
 * When each queue's worker last asked Redis for work. A worker that lost its connection in a failover can look alive and
 * fetch nothing; the age of the last fetch is the one sign that tells (bullmq-facts).
 */
export class Liveness {
  private readonly fetched = new Map<string, number>();

  constructor(private readonly now: () => number) {}

  beat(queue: string): void {
    this.fetched.set(queue, this.now());
  }

  /** Milliseconds since 1970, by queue. */
  get lastFetch(): ReadonlyMap<string, number> {
    return this.fetched;
  }

  /** The queue that has waited longest, and for how long (ms); null when none is worked on here. */
  get stalest(): { readonly queue: string; readonly ageMs: number } | null {
    let stalest: { queue: string; ageMs: number } | null = null;
    for (const [queue, at] of this.fetched) {
      const ageMs = this.now() - at;
      if (stalest === null || ageMs > stalest.ageMs) stalest = { queue, ageMs };
    }
    return stalest;
  }
}
