import { parser } from '@prometheus-io/lezer-promql';
import { recordingRules } from '../../grafana/src/recording.js';
import { Scale } from '../../grafana/src/scale.js';
import { createMetrics } from '../../src/metrics/index.js';

/** What a query asks for. `errors`: where it is no PromQL. */
export interface Parsed {
  readonly selectors: readonly {
    readonly metric: string;
    readonly labels: readonly string[];
    /** Asked for over a span, and not for now. */
    readonly range: boolean;
  }[];
  readonly grouped: readonly string[];
  readonly durations: readonly string[];
  readonly errors: readonly string[];
}

export function parsePromql(expr: string): Parsed {
  const selectors: { metric: string; labels: string[]; range: boolean }[] = [];
  const grouped: string[] = [];
  const durations: string[] = [];
  const errors: string[] = [];
  const textOf = (node: { from: number; to: number }) => expr.slice(node.from, node.to);
  parser.parse(expr).iterate({
    enter(node) {
      if (node.type.isError) errors.push(expr.slice(Math.max(0, node.from - 20), node.to + 20));
      if (node.name === 'VectorSelector')
        selectors.push({ metric: '', labels: [], range: node.node.parent?.name === 'MatrixSelector' });
      const last = selectors.at(-1);
      if (node.name === 'Identifier' && last !== undefined && last.metric === '') last.metric = textOf(node);
      if (node.name === 'LabelName') {
        if (node.node.parent?.name === 'GroupingLabels') grouped.push(textOf(node));
        else last?.labels.push(textOf(node));
      }
      if (/DurationLiteralInDurationContext$/.test(node.name)) durations.push(textOf(node));
    },
  });
  return { selectors, grouped, durations, errors };
}

const { registry } = createMetrics({ version: '0.1.0', servers: {}, process: true });
const recorded = recordingRules(new Scale(1));

/** Labels of a metric that rules and panels may name; null: there is no such metric. */
export function labelsOf(metric: string): ReadonlySet<string> | null {
  const target = ['job', 'instance'];
  if (metric === 'up') return new Set(target);
  const base = metric.replace(/_(bucket|sum|count)$/, '');
  const found = registry.getSingleMetric(metric) ?? registry.getSingleMetric(base);
  if (found !== undefined) {
    const { labelNames } = found as unknown as { labelNames: readonly string[] };
    return new Set([...labelNames, ...target, ...(metric.endsWith('_bucket') ? ['le'] : [])]);
  }
  // The labels of recorded series follow from their queries; promtool's tests look at them.
  return recorded.some(({ record }) => record === metric)
    ? new Set(['server', 'tool', 'outcome', 'reason', 'source', 'sink', 'objective', ...target])
    : null;
}

/** What is wrong with a query, '' when nothing is. */
export function faultsOf(expr: string): string {
  const { selectors, errors } = parsePromql(expr);
  const faults = errors.map((error) => `no PromQL near "${error}"`);
  if (!/\b(vector)\b/.test(expr) && selectors.length === 0) faults.push('no metric');
  for (const { metric, labels } of selectors) {
    const known = labelsOf(metric);
    if (known === null) faults.push(`no metric ${metric}`);
    else for (const label of labels) if (!known.has(label)) faults.push(`${metric} has no label ${label}`);
  }
  return faults.join('; ');
}
