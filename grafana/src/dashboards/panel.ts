/** A panel as our dashboards use them; `grafana/src/dashboards.ts` makes Grafana's JSON of it. */
export interface PanelSpec {
  readonly title: string;
  /** What it shows and what is normal, for somebody who sees it for the first time. */
  readonly description: string;
  /** The alert that watches this, and whose runbook is linked. */
  readonly runbook: string;
  readonly kind: 'stat' | 'lines' | 'stacked';
  /** Grafana's id of a unit. */
  readonly unit: string;
  readonly queries: readonly (readonly [expr: string, legend: string])[];
  /** Columns of 24. */
  readonly width: number;
  /** From where on it is bad, drawn as a line; `serious` in red. */
  readonly thresholds?: { readonly warn?: number; readonly serious?: number };
  readonly min?: number;
  readonly max?: number;
  /** Why it may have no data while nothing is wrong; absent: it always has. */
  readonly onlyOnIncident?: string;
}

export interface DashboardSpec {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly panels: readonly PanelSpec[];
}

/** Selectors of the variables. */
export const server = 'server=~"$server"';
export const tool = 'server=~"$server",tool=~"$tool"';
/** The queues of the chosen servers, and the public one. */
export const queue = 'queue=~"scrape|(start|poll|pages|abort)-($server)"';

export const stat = (spec: Omit<PanelSpec, 'kind' | 'width'> & { width?: number }): PanelSpec => ({
  kind: 'stat',
  width: 4,
  ...spec,
});
export const lines = (spec: Omit<PanelSpec, 'kind' | 'width'> & { width?: number }): PanelSpec => ({
  kind: 'lines',
  width: 12,
  ...spec,
});
export const stacked = (spec: Omit<PanelSpec, 'kind' | 'width'> & { width?: number }): PanelSpec => ({
  ...lines(spec),
  kind: 'stacked',
});

/** A quantile over the chosen interval. */
export const quantile = (q: number, histogram: string, selector: string, by = ''): string =>
  `histogram_quantile(${q}, sum by (${by === '' ? 'le' : `${by}, le`}) (rate(${histogram}_bucket{${selector}}[$__rate_interval])))`;

/** A query as it is asked with all servers and tools chosen, for whoever is not Grafana. */
export const withoutVariables = (expr: string, rateInterval = '1m'): string =>
  expr
    .replaceAll('$__rate_interval', rateInterval)
    .replaceAll('($server)', '(.*)')
    .replaceAll(/"\$(server|tool)"/g, '".*"');
