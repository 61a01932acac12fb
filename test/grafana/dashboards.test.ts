import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { withoutVariables } from '../../grafana/src/dashboards/panel.js';
import { faultsOf } from '../alerts/promql.js';

interface Panel {
  id: number;
  title: string;
  description: string;
  datasource: { uid: string };
  gridPos: { x: number; y: number; w: number; h: number };
  fieldConfig: { defaults: { unit: string } };
  links: { url: string }[];
  targets: { refId: string; expr: string }[];
}
interface Dashboard {
  uid: string;
  panels: Panel[];
  templating: { list: { name: string; type: string }[] };
  annotations: { list: { expr?: string }[] };
}

const folder = fileURLToPath(new URL('../../grafana', import.meta.url));
const read = (path: string): string => readFileSync(join(folder, path), 'utf8');
const files = readdirSync(join(folder, 'dashboards')).filter((name) => name.endsWith('.json'));

it('are the four that the operations documents name', () => {
  expect(files.sort()).toEqual(['overview.json', 'process.json', 'queues.json', 'server.json']);
});

describe.each(files)('dashboard %s', (file) => {
  const dashboard = JSON.parse(read(join('dashboards', file))) as Dashboard;

  it('asks in valid PromQL for metrics and labels that there are', () => {
    for (const { title, targets } of dashboard.panels) {
      expect(targets.length, title).toBeGreaterThan(0);
      for (const { expr } of targets) expect(faultsOf(withoutVariables(expr)), `${title}: ${expr}`).toBe('');
    }
  });

  it('explains each panel, with a unit, an id of its own, and a data source that can be chosen', () => {
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
    expect(variables).toEqual(['datasource', 'server', 'tool']);
  });

  it('links each panel to a runbook that is there, and shows alerts as annotations', () => {
    for (const { title, links } of dashboard.panels) {
      const name = /^\/public\/runbooks\/(Trawl\w+\.md)$/.exec(links[0]?.url ?? '')?.[1] ?? '';
      expect(name, title).not.toBe('');
      expect(existsSync(join(folder, '../docs/runbooks', name)), title).toBe(true);
    }
    expect(dashboard.annotations.list.map(({ expr }) => expr ?? '').join()).toContain('ALERTS{');
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
    const { volumes } = compose.services.grafana;
    expect(volumes).toContain(`./grafana/dashboards:${providers[0].options.path}:ro`);
    // Runbook links in alerts and panels lead there.
    expect(volumes).toContain('./docs/runbooks:/usr/share/grafana/public/runbooks:ro');
    for (const { url } of datasources) expect(Object.keys(compose.services)).toContain(new URL(url).hostname);
  });

  it('lets Prometheus and Grafana tell the Alertmanager of the compose file', () => {
    const { services } = parse(readFileSync(join(folder, '../docker-compose.yml'), 'utf8'));
    const { alerting } = parse(read('prometheus/prometheus.yml'));
    const { contactPoints } = parse(read('provisioning/alerting/contact-points.yaml'));
    const [target] = alerting.alertmanagers[0].static_configs[0].targets;
    expect(contactPoints[0].receivers[0].settings.url).toBe(`http://${target}`);
    expect(Object.keys(services)).toContain(target.split(':')[0]);
    expect(services.prometheus.volumes).toContain('./grafana/prometheus:/etc/prometheus:ro');
  });

  it('lets Prometheus scrape the port the worker serves', () => {
    const compose = parse(readFileSync(join(folder, '../docker-compose.yml'), 'utf8'));
    const [trawl] = parse(read('prometheus/prometheus.yml')).scrape_configs;
    const [target] = trawl.dns_sd_configs;
    expect(Object.keys(compose.services)).toContain(target.names[0]);
    expect(compose.services[target.names[0]].expose).toEqual([String(target.port)]);
  });
});
