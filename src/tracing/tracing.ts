import type { Telemetry } from 'bullmq';

/** What a span is about; null and undefined are left out. The names are those of the log's fields. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | null | undefined>>;

/**
 * OpenTelemetry traces, or nothing at all. A span lasts one step (one poll, one page) and ends with it: a run of hours is many
 * spans of one trace, whose context travels in the jobs, and none that a process holds on to.
 */
export interface Tracing {
  /** For queues and workers; undefined: off. */
  readonly bullmq: Telemetry | undefined;
  /** Tells the span of the step in hand what it is about. */
  note(attributes: SpanAttributes): void;
  /**
   * A span within the step in hand. Work outside any step (a probe, the sweep) has none.
   * @param seen what the result says of the span
   */
  span<T>(
    name: string,
    attributes: SpanAttributes,
    work: () => Promise<T>,
    seen?: (result: T) => SpanAttributes,
  ): Promise<T>;
  /** Begins the trace of a scrape that is submitted; its job carries what this returns as `opts.telemetry`. */
  submitted(attributes: SpanAttributes): { readonly metadata: string } | undefined;
  /** The context of a public job whose producer gave it none, or one that cannot be read: the same at each call. */
  contextOf(job: {
    readonly id: string;
    readonly timestamp: number;
    readonly taken: number;
  }): string | undefined;
  /** Sends what is left, for 2 s at most. */
  close(): Promise<void>;
}

export const noTracing: Tracing = {
  bullmq: undefined,
  note() {},
  span: (_name, _attributes, work) => work(),
  submitted: () => undefined,
  contextOf: () => undefined,
  async close() {},
};
