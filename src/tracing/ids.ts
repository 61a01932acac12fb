import { createHash } from 'node:crypto';
import type { IdGenerator } from '@opentelemetry/sdk-trace';

interface Ids {
  readonly traceId: string;
  readonly spanId: string;
}

/** Trace and span id of a scrape whose producer knows nothing of traces: whoever takes its job comes to the same. */
export function idsOf(prefix: string, jobId: string, timestamp: number): Ids {
  const hash = createHash('sha256')
    .update(JSON.stringify([prefix, jobId, timestamp]))
    .digest('hex');
  return { traceId: hash.slice(0, 32), spanId: hash.slice(32, 48) };
}

/** Random ids, save for a span that is given its own. */
export class Identifiers implements IdGenerator {
  #next: Ids | null = null;

  constructor(private readonly random: IdGenerator) {}

  /** `start` starts one span, in the same tick. */
  using<T>(ids: Ids, start: () => T): T {
    this.#next = ids;
    try {
      return start();
    } finally {
      this.#next = null;
    }
  }

  generateTraceId = (): string => this.#next?.traceId ?? this.random.generateTraceId();
  generateSpanId = (): string => this.#next?.spanId ?? this.random.generateSpanId();
}
