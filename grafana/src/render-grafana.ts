import type { Alert, Format, Words } from './alert.js';
import { dashboardUrl, toYaml } from './render-prometheus.js';
import type { Scale } from './scale.js';
import { settings } from './settings.js';

/** The data source's uid in grafana/provisioning/datasources. */
export const datasourceUid = 'prometheus';
const contactPoint = 'trawl-alertmanager';

/** Provisioning files expand `$NAME`, so each `$` of a template is doubled. */
const words: Words = {
  label: (name) => `{{ $$labels.${name} }}`,
  value: (format) => amountOf('A', format),
};

function amountOf(refId: string, format: Format): string {
  const value = `$$values.${refId}.Value`;
  switch (format) {
    case 'percent':
      return `{{ humanizePercentage ${value} }}`;
    case 'number':
      return `{{ printf "%.0f" ${value} }}`;
    case 'usd':
      return `$$${`{{ printf "%.2f" ${value} }}`}`;
    case 'seconds':
      return `{{ humanizeDuration ${value} }}`;
    default:
      return format satisfies never;
  }
}

/** Grafana-managed rules: the same conditions, for installations that page from Grafana. They need the recording rules. */
export function grafanaRules(alerts: readonly Alert[], scale: Scale): string {
  return toYaml({
    apiVersion: 1,
    groups: [
      {
        orgId: 1,
        name: 'trawl',
        folder: 'Trawl',
        interval: scale.text(60),
        rules: alerts.map((alert) => ruleOf(alert, scale)),
      },
    ],
  });
}

/** Where they go: the Alertmanager that also gets Prometheus's own, so that it mutes and groups both as one. */
export function grafanaContactPoints(alertmanagerUrl: string): string {
  return toYaml({
    apiVersion: 1,
    contactPoints: [
      {
        orgId: 1,
        name: contactPoint,
        receivers: [
          { uid: 'trawl-alertmanager', type: 'prometheus-alertmanager', settings: { url: alertmanagerUrl } },
        ],
      },
    ],
  });
}

export function grafanaPolicies(): string {
  return toYaml({
    apiVersion: 1,
    policies: [{ orgId: 1, receiver: contactPoint, group_by: ['alertname', 'server'] }],
  });
}

function ruleOf(alert: Alert, scale: Scale): object {
  const { affected, labels } = alert;
  const by = labels.length === 0 ? '' : ` by (${labels.join(', ')})`;
  const data = [query('A', alert.expr), threshold('C', 'A')];
  const count = affected === null ? '' : affected.query('', by).replaceAll('{}', '');
  if (count !== '') data.splice(1, 0, query('B', count));
  const facts = [
    affected === null
      ? ''
      : `{{ with $$values.B }}{{ printf "%.0f" .Value }}{{ else }}some{{ end }} ${affected.what}`,
    alert.layer === 'watch' ? '' : `for at least ${scale.text(Math.max(1, alert.for))}`,
  ].filter((each) => each !== '');
  const first = `${alert.loses(words)}${facts.length === 0 ? '' : `; ${facts.join(', ')}`}. Type: ${alert.command(words)}`;
  return {
    uid: `trawl-${alert.name.replace(/^Trawl/, '').toLowerCase()}`,
    title: alert.name,
    condition: 'C',
    for: scale.text(Math.max(1, alert.for)),
    noDataState: 'OK',
    execErrState: 'Error',
    isPaused: false,
    labels: { severity: alert.severity, layer: alert.layer },
    annotations: {
      summary: alert.summary(words),
      description: `${first}\n${escapeMoney(alert.detail(words))}`,
      runbook_url: `${settings.urls.runbooks}/${alert.name}.md`,
      dashboard_url: dashboardUrl(alert, words),
    },
    data,
  };
}

/** A dollar sign of prose, as in "$100", would be taken for a variable. */
const escapeMoney = (text: string): string => text.replaceAll(/(?<!\$)\$(?=\d)/g, '$$$$');

function query(refId: string, expr: string) {
  return {
    refId,
    relativeTimeRange: { from: 600, to: 0 },
    datasourceUid,
    model: { refId, expr, instant: true, range: false, editorMode: 'code' },
  };
}

/** A rule of Prometheus fires while its query returns anything; values are never below 0. */
function threshold(refId: string, expression: string) {
  return {
    refId,
    relativeTimeRange: { from: 0, to: 0 },
    datasourceUid: '__expr__',
    model: {
      refId,
      type: 'threshold',
      expression,
      conditions: [{ type: 'query', evaluator: { type: 'gt', params: [-1] } }],
    },
  };
}
