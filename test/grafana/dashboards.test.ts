import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createMetrics } from '../../src/metrics/index.js';

interface Panel {
  id: number;
  title: string;
  description: string;
  datasource: { uid: string };
  gridPos: { x: number; y: number; w: number; h: number };
  fieldConfig: { defaults: { unit: string } };
  targets: { refId: string; expr: string }[];
}
interface Dashboard {
  uid: string;
  panels: Panel[];
  templating: { list: { name: string; type: string }[] };
}

const folder = fileURLToPath(new URL('../../grafana', import.meta.url));
const read = (path: string): string => readFileSync(join(folder, path), 'utf8');
const files = readdirSync(join(folder, 'dashboards')).filter((name) => name.endsWith('.json'));
const { registry } = createMetrics({ version: '0.1.0', servers: {}, process: true });
const histogramSuffix = /_(bucket|sum|count)$/;

/** Metric names of a query: words that begin as ours or the process's do. */
const metricsOf = (expr: string): string[] => expr.match(/\b(trawl|process|nodejs)_[a-z0-9_]+/g) ?? [];

function labelNames(metric: string): string[] {
  const found = registry.getSingleMetric(metric) as unknown as { labelNames: string[] } | undefined;
  return found?.labelNames ?? [];
}

describe.each(files)('dashboard %s', (file) => {
  const dashboard = JSON.parse(read(join('dashboards', file))) as Dashboard;
  const queries = dashboard.panels.flatMap((panel) => panel.targets.map(({ expr }) => expr));

  it('names only metrics that the registry has', () => {
    const known = new Set(registry.getMetricsAsArray().map(({ name }) => name));
    const used = queries.flatMap(metricsOf);
    expect(used.length).toBeGreaterThan(0);
    const unknown = used.filter((name) => !known.has(name) && !known.has(name.replace(histogramSuffix, '')));
    expect(unknown).toEqual([]);
    for (const expr of queries) expect(metricsOf(expr).length, expr).toBeGreaterThan(0);
  });

  it('selects and groups by labels that the metrics have', () => {
    for (const expr of queries) {
      for (const [, metric = '', selector = ''] of expr.matchAll(/(trawl_[a-z0-9_]+)\{([^}]*)\}/g)) {
        const labels = [...selector.matchAll(/([a-z_]+)\s*(=~|!~|!=|=)/g)].map(([, label]) => label);
        expect(labelNames(metric.replace(histogramSuffix, '')), metric).toEqual(
          expect.arrayContaining(labels),
        );
      }
      const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/,\s*/));
      const present = metricsOf(expr).flatMap(labelNames);
      expect([...present, 'le', 'job', 'instance'], expr).toEqual(expect.arrayContaining(grouped));
    }
  });

  it('explains each panel, with a unit, an id of its own and a data source that can be chosen', () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const panel of dashboard.panels) {
      expect(panel.description.length, panel.title).toBeGreaterThan(20);
      expect(panel.fieldConfig.defaults.unit, panel.title).toBeTruthy();
      expect(panel.datasource.uid).toBe(`\${datasource}`);
      const refs = panel.targets.map(({ refId }) => refId);
      expect(new Set(refs).size).toBe(refs.length);
    }
    const variables = dashboard.templating.list.map(({ name }) => name);
    expect(variables).toEqual(expect.arrayContaining(['datasource', 'server', 'tool']));
  });

  it('has no panels over one another, all within the 24 columns', () => {
    const taken = new Map<string, string>();
    for (const { title, gridPos } of dashboard.panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.get(`${x},${y}`), `${title} lies over another panel`).toBeUndefined();
          taken.set(`${x},${y}`, title);
        }
      }
    }
  });
});

describe('overview', () => {
  it('shows empty successes and protocol errors first', () => {
    const { panels } = JSON.parse(read('dashboards/overview.json')) as Dashboard;
    const first = panels.filter(({ gridPos }) => gridPos.y === 0).sort((a, b) => a.gridPos.x - b.gridPos.x);
    expect(first[0]?.targets[0]?.expr).toContain('outcome="empty"');
    expect(first[1]?.targets[0]?.expr).toContain('result="protocol_error"');
  });
});

describe('provisioning', () => {
  it('points Grafana at the dashboards and the Prometheus of the compose file', () => {
    const compose = parse(readFileSync(join(folder, '../docker-compose.yml'), 'utf8'));
    const { providers } = parse(read('provisioning/dashboards/trawl.yaml'));
    const { datasources } = parse(read('provisioning/datasources/prometheus.yaml'));
    expect(compose.services.grafana.volumes).toContain(
      `./grafana/dashboards:${providers[0].options.path}:ro`,
    );
    expect(Object.keys(compose.services)).toContain(new URL(datasources[0].url).hostname);
  });

  it('lets Prometheus scrape the port the worker serves', () => {
    const compose = parse(readFileSync(join(folder, '../docker-compose.yml'), 'utf8'));
    const [trawl] = parse(read('prometheus/prometheus.yml')).scrape_configs;
    const [target] = trawl.dns_sd_configs;
    expect(Object.keys(compose.services)).toContain(target.names[0]);
    expect(compose.services[target.names[0]].expose).toEqual([String(target.port)]);
  });
});
