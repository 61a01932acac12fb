/** The platform's own rate limit, a token bucket: one second's worth of requests may come at once. */
export class RequestRate {
  #tokens = Number.POSITIVE_INFINITY;
  #refilledAt = 0;

  /** False: too many requests. `rate` is requests a second and may change from call to call. */
  take(rate: number): boolean {
    const now = performance.now();
    this.#tokens = Math.min(rate, this.#tokens + ((now - this.#refilledAt) / 1000) * rate);
    this.#refilledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
