import type { Alert } from './alert.js';
import type { RecordingRule } from './recording.js';
import { alertGroups, recordingGroups, toYaml } from './render-prometheus.js';
import type { Scale } from './scale.js';

/** The same groups as the rule files, as the Prometheus operator takes them. */
export function prometheusRule(
  rules: readonly RecordingRule[],
  alerts: readonly Alert[],
  scale: Scale,
): string {
  return toYaml({
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'trawl', labels: { 'app.kubernetes.io/name': 'trawl' } },
    spec: { groups: [...recordingGroups(rules), ...alertGroups(alerts, scale)] },
  });
}
