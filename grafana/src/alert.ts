/**
 * What mutes what (docs/alerting in the runbooks' README): `platform` mutes everything below it; `hold` (the server is held) mutes causes
 * and effects on that server; a `cause` mutes effects on its server. `notice` stands for itself. `watch` always fires.
 */
export type Layer = 'platform' | 'hold' | 'cause' | 'effect' | 'notice' | 'watch';
export type Severity = 'critical' | 'warning' | 'info';
export type Format = 'percent' | 'number' | 'usd' | 'seconds';

/** How a label or the value is written in a text: Prometheus and Grafana differ. */
export interface Words {
  label(name: string): string;
  value(format: Format): string;
}

export interface Alert {
  /** CamelCase, begins with Trawl; the runbook is docs/runbooks/<name>.md. */
  readonly name: string;
  readonly severity: Severity;
  readonly layer: Layer;
  /** Seconds the condition has to last. */
  readonly for: number;
  /** Labels that the expression leaves, and that a page names. */
  readonly labels: readonly string[];
  /** True while it returns anything. Its values are never below 0 (Grafana's condition is `> -1`). */
  readonly expr: string;
  readonly summary: (words: Words) => string;
  /** What users lose, a sentence without its end; begins the page's first line. */
  readonly loses: (words: Words) => string;
  /**
   * How many scrapes: a query for the alert's labels. `filter` is a selector's inside (`server="apify"`), or empty; `by`
   * the grouping that goes with it.
   */
  readonly affected: { readonly what: string; readonly query: (filter: string, by: string) => string } | null;
  /** What to type first. */
  readonly command: (words: Words) => string;
  /** The second line: the value and what it is measured against. */
  readonly detail: (words: Words) => string;
  readonly dashboard: 'overview' | 'server' | 'queues' | 'process';
}
