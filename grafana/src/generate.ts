import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Alert } from './alert.js';
import { alertmanagerConfig, type Receiver } from './alertmanager.js';
import { fleetAlerts } from './alerts-fleet.js';
import { serverAlerts } from './alerts-server.js';
import { dashboards } from './dashboards.js';
import { recordingRules } from './recording.js';
import { grafanaContactPoints, grafanaPolicies, grafanaRules } from './render-grafana.js';
import { prometheusRule } from './render-kubernetes.js';
import { alertGroups, recordingGroups, toYaml } from './render-prometheus.js';
import { ruleTestFiles } from './rule-tests.js';
import { Scale } from './scale.js';

export interface GenerateOptions {
  /** Every window, `for` and route interval times this; 1 is what is shipped. */
  readonly windowFactor?: number;
  /** Integrations of Alertmanager's receivers. */
  readonly receivers?: Partial<Record<Receiver, object>>;
}

export function alertsOf(windowFactor = 1): Alert[] {
  const scale = new Scale(windowFactor);
  return [...serverAlerts(scale), ...fleetAlerts(scale)];
}

/** Rules and Alertmanager's configuration by path below grafana/. */
export function rules({ windowFactor = 1, receivers }: GenerateOptions = {}): Record<string, string> {
  const scale = new Scale(windowFactor);
  const alerts = alertsOf(windowFactor);
  return {
    'prometheus/rules/trawl-recording.yml': toYaml({ groups: recordingGroups(recordingRules(scale)) }),
    'prometheus/rules/trawl-alerts.yml': toYaml({ groups: alertGroups(alerts, scale) }),
    'prometheus/alertmanager.yml': alertmanagerConfig(scale, receivers),
  };
}

/** Everything under grafana/ that is generated, by path below it. */
export function everything(): Record<string, string> {
  const scale = new Scale(1);
  const alerts = alertsOf();
  return {
    ...rules(),
    ...ruleTestFiles(),
    'provisioning/alerting/rules.yaml': grafanaRules(alerts, scale),
    'provisioning/alerting/contact-points.yaml': grafanaContactPoints('http://alertmanager:9093'),
    'provisioning/alerting/policies.yaml': grafanaPolicies(),
    ...Object.fromEntries(
      dashboards().map((dashboard) => [
        `dashboards/${String(dashboard.uid).replace(/^trawl-/, '')}.json`,
        `${JSON.stringify(dashboard, null, 2)}\n`,
      ]),
    ),
  };
}

/** What is generated for Kubernetes, by path below deploy/kubernetes/. */
export function kubernetes(): Record<string, string> {
  const scale = new Scale(1);
  return { 'monitoring/prometheus-rule.yaml': prometheusRule(recordingRules(scale), alertsOf(), scale) };
}

/** Folders whose every file is generated: what is there and no longer made is removed. */
const ours = ['prometheus/rules', 'prometheus/tests', 'provisioning/alerting', 'dashboards'];

export function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  for (const place of ours) {
    if (!Object.keys(files).some((path) => path.startsWith(`${place}/`))) continue;
    for (const name of readdirSync(join(folder, place))) {
      if (!(`${place}/${name}` in files)) rmSync(join(folder, place, name));
    }
  }
}
