import { isFinal, type Run, statusOf } from './runs.js';

/**
 * All runs in the order of their start, and those in flight. Runs past `keep` are forgotten from the oldest, final ones
 * only, and so are their datasets: the real platform drops unnamed storages after some days too.
 */
export class RunRegistry {
  readonly #byId = new Map<string, Run>();
  readonly #keep: number;
  readonly #keepInputBytes: number;
  #order: Run[] = [];
  /** Where `#order` begins: what lies before was forgotten. */
  #head = 0;
  #inputBytes = 0;
  /** A binary heap on `endAt` at the time of insertion; an abort inserts the run once more. */
  readonly #ends: { at: number; run: Run }[] = [];
  readonly #inFlight = new Set<Run>();
  #memoryMb = 0;
  maxInFlight = 0;
  maxMemoryMb = 0;

  constructor(keep: number, keepInputBytes: number) {
    this.#keep = keep;
    this.#keepInputBytes = keepInputBytes;
  }

  add(run: Run, now: number): void {
    this.#byId.set(run.id, run);
    this.#order.push(run);
    this.#inputBytes += run.input.length;
    this.#inFlight.add(run);
    this.#memoryMb += run.memoryMb;
    this.#push(run);
    this.#settle(now);
    this.maxInFlight = Math.max(this.maxInFlight, this.#inFlight.size);
    this.maxMemoryMb = Math.max(this.maxMemoryMb, this.#memoryMb);
    this.#forget(now);
  }

  get(id: string): Run | undefined {
    return this.#byId.get(id);
  }

  get size(): number {
    return this.#order.length - this.#head;
  }

  /** To be called when `endAt` of a run moved forward in time. */
  ended(run: Run): void {
    this.#push(run);
  }

  inFlight(now: number): { readonly runs: number; readonly memoryMb: number } {
    this.#settle(now);
    return { runs: this.#inFlight.size, memoryMb: this.#memoryMb };
  }

  underWay(now: number): Run[] {
    this.#settle(now);
    return [...this.#inFlight];
  }

  all(): Run[] {
    return this.#order.slice(this.#head);
  }

  /** A page of the account's runs, oldest first unless `desc`. */
  list(query: { offset: number; limit: number; desc: boolean; status: string | null }, now: number) {
    const { offset, limit, desc, status } = query;
    if (status !== null) {
      const matching = this.all().filter((run) => statusOf(run, now) === status);
      if (desc) matching.reverse();
      return { total: matching.length, runs: matching.slice(offset, offset + limit) };
    }
    const total = this.size;
    const runs: Run[] = [];
    for (let at = offset; at < Math.min(total, offset + limit); at++) {
      const run = this.#order[this.#head + (desc ? total - 1 - at : at)];
      if (run !== undefined) runs.push(run);
    }
    return { total, runs };
  }

  #settle(now: number): void {
    let first = this.#ends[0];
    while (first !== undefined && first.at <= now) {
      this.#pop();
      if (isFinal(first.run, now) && this.#inFlight.delete(first.run)) this.#memoryMb -= first.run.memoryMb;
      else if (this.#inFlight.has(first.run)) this.#push(first.run);
      first = this.#ends[0];
    }
  }

  #forget(now: number): void {
    while (this.size > this.#keep || this.#inputBytes > this.#keepInputBytes) {
      const oldest = this.#order[this.#head];
      if (oldest === undefined || !isFinal(oldest, now)) return;
      this.#head += 1;
      this.#byId.delete(oldest.id);
      this.#inputBytes -= oldest.input.length;
      if (this.#head > 10_000 && this.#head * 2 > this.#order.length) {
        this.#order = this.#order.slice(this.#head);
        this.#head = 0;
      }
    }
  }

  #push(run: Run): void {
    const heap = this.#ends;
    const entry = { at: run.endAt, run };
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as { at: number; run: Run };
      if (above.at <= entry.at) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#ends;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && right.at < (heap[child] as { at: number }).at) child += 1;
      const below = heap[child] as { at: number; run: Run };
      if (below.at >= last.at) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
  }
}
