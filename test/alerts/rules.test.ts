import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { alertsOf, everything, rules } from '../../grafana/src/generate.js';
import { metricsPage } from '../../grafana/src/metrics-text.js';
import { recordingRules } from '../../grafana/src/recording.js';
import { Scale } from '../../grafana/src/scale.js';
import { createMetrics } from '../../src/metrics/index.js';
import { faultsOf, parsePromql } from './promql.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const alerts = alertsOf();
const recording = recordingRules(new Scale(1));
const tool = (command: string, args: string[], input?: string) => {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', input, cwd: root });
  return { status, said: stdout + stderr };
};

describe('what is generated', () => {
  const files = everything();

  it.each(Object.keys(files))('%s is current (npm run grafana)', (path) => {
    expect(read(`grafana/${path}`)).toBe(files[path]);
  });

  it('leaves nothing behind that is not made any more', () => {
    for (const folder of ['prometheus/rules', 'prometheus/tests', 'provisioning/alerting', 'dashboards']) {
      const made = Object.keys(files).filter((path) => path.startsWith(`${folder}/`));
      expect(
        readdirSync(join(root, 'grafana', folder))
          .map((name) => `${folder}/${name}`)
          .sort(),
      ).toEqual(made.sort());
    }
  });

  it('docs/metrics.md is current (npm run docs:metrics)', () => {
    expect(read('docs/metrics.md')).toBe(metricsPage());
  });
});

describe('alerts', () => {
  it.each(alerts.map((alert) => [alert.name, alert] as const))(
    '%s is complete and asks for what there is',
    (name, alert) => {
      expect(name).toMatch(/^Trawl[A-Z][A-Za-z]+$/);
      expect(faultsOf(alert.expr)).toBe('');
      if (name !== 'TrawlWatchdog') expect(alert.for).toBeGreaterThan(0);
      if (alert.affected !== null) expect(faultsOf(alert.affected.query('', ''))).toBe('');
    },
  );

  it('have names of their own', () => {
    expect(new Set(alerts.map(({ name }) => name)).size).toBe(alerts.length);
  });

  it('page only for what cannot wait: half of them at most', () => {
    const critical = alerts.filter(({ severity }) => severity === 'critical');
    expect(critical.length).toBeLessThan(0.6 * alerts.length);
    // An effect that a person paused is not among them (alerting: paused never pages).
    expect(critical.map(({ name }) => name)).not.toContain('TrawlPausedLong');
  });

  it('say first what users lose, how many scrapes, since when, and what to type', () => {
    const { groups } = parse(rules()['prometheus/rules/trawl-alerts.yml'] ?? '');
    for (const rule of groups[0].rules) {
      const [first = '', second = ''] = rule.annotations.description.split('\n');
      expect(first, rule.alert).toMatch(/ Type: trawl [a-z]+/);
      if (rule.alert !== 'TrawlWatchdog')
        expect(first, rule.alert).toMatch(/; .*\| query.*, since .*ALERTS_FOR_STATE/);
      expect(second.length, rule.alert).toBeGreaterThan(20);
      expect(rule.annotations.runbook_url).toMatch(new RegExp(`/${rule.alert}\\.md$`));
      expect(rule.annotations.dashboard_url).toMatch(/\/d\/trawl-(overview|server|queues|process)/);
    }
  });

  it('take fleet gauges by max, never by sum', () => {
    const gauges =
      'queue_jobs|queue_oldest_age_seconds|runs_in_flight|run_slots|server_held|tool_held|redis_memory';
    const summed = new RegExp(`sum[^()]*\\([^()]*trawl_(${gauges})`);
    for (const { expr } of [...recording, ...alerts]) expect(expr).not.toMatch(summed);
  });
});

describe('recording rules', () => {
  it.each(recording.map(({ record, expr }) => [record, expr]))(
    '%s asks for what there is',
    (_record, expr) => {
      expect(faultsOf(expr)).toBe('');
    },
  );

  it('use only what stands above them, or the past: a group is evaluated in order', () => {
    const before = new Set<string>();
    const all = new Set(recording.map(({ record }) => record));
    for (const { record, expr } of recording) {
      for (const { metric, range } of parsePromql(expr).selectors) {
        if (!metric.startsWith('trawl:')) continue;
        // What was over a span is there whatever the order.
        expect([...(range ? all : before)], `${record} uses ${metric}`).toContain(metric);
      }
      before.add(record);
    }
  });
});

describe('one factor for all windows', () => {
  const ms = (text: string) => {
    const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
    return [...text.matchAll(/(\d+)(ms|[smhd])/g)].reduce(
      (sum, [, count, unit]) => sum + Number(count) * units[unit as keyof typeof units],
      0,
    );
  };

  it('scales every duration in every query, and every for', () => {
    const scaled = alertsOf(1 / 60);
    const scaledRecording = recordingRules(new Scale(1 / 60));
    const pairs = [
      ...alerts.map((alert, index) => [alert.expr, scaled[index]?.expr ?? ''] as const),
      ...recording.map((rule, index) => [rule.expr, scaledRecording[index]?.expr ?? ''] as const),
    ];
    for (const [shipped, short] of pairs) {
      const [long, quick] = [parsePromql(shipped).durations, parsePromql(short).durations];
      expect(quick.map(ms), short).toEqual(long.map((each) => ms(each) / 60));
    }
    const fors = (factor: number) =>
      parse(rules({ windowFactor: factor })['prometheus/rules/trawl-alerts.yml'] ?? '').groups[0].rules.map(
        (rule: { for?: string }) => ms(rule.for ?? ''),
      );
    expect(fors(1 / 60)).toEqual(fors(1).map((each: number) => each / 60));
  });

  it.each([0, -1, 2, Number.NaN])('refuses the factor %s', (factor) => {
    expect(() => rules({ windowFactor: factor })).toThrow(/windowFactor/);
  });
});

describe("Prometheus's own tools", () => {
  it('promtool check rules finds nothing wrong', () => {
    const { status, said } = tool('promtool', [
      'check',
      'rules',
      '--lint-fatal',
      'grafana/prometheus/rules/trawl-recording.yml',
      'grafana/prometheus/rules/trawl-alerts.yml',
    ]);
    expect(said).not.toMatch(/FAILED|lint error/);
    expect(status).toBe(0);
  });

  it('promtool check config accepts what is shipped', () => {
    const { status, said } = tool('promtool', ['check', 'config', 'grafana/prometheus/prometheus.yml']);
    expect(said).toMatch(/2 rule files found/);
    expect(status, said).toBe(0);
  });

  it('promtool check metrics has nothing to say of ours', async () => {
    const metrics = createMetrics({ version: '0.1.0', servers: { apify: { tools: ['a/b'] } } });
    metrics.mcpRequest('apify', 'start', 'protocol_error', 1, -32602);
    metrics.sinkHeld('file', false);
    metrics.redis({ usedBytes: 1, maxBytes: 2, evictedKeys: 0 });
    const { status, said } = tool('promtool', ['check', 'metrics'], await metrics.text());
    expect(said).toBe('');
    expect(status).toBe(0);
  });

  it('each alert has a case in which it fires and one in which nothing does', () => {
    const tests = readdirSync(join(root, 'grafana/prometheus/tests'))
      .map((name) => read(`grafana/prometheus/tests/${name}`))
      .join('\n');
    for (const { name } of alerts) {
      if (name === 'TrawlWatchdog') continue;
      expect(tests, name).toContain(`count(ALERTS{alertname="${name}",alertstate="firing"`);
    }
    // The cases themselves run in `npm run test:rules`: they take a minute.
  });
});

describe("Grafana's own rules", () => {
  const { groups } = parse(everything()['provisioning/alerting/rules.yaml'] ?? '');
  const managed: {
    uid: string;
    title: string;
    annotations: Record<string, string>;
    data: { refId: string; model: { expr?: string } }[];
  }[] = groups[0].rules;

  it('are the same alerts with the same queries', () => {
    expect(managed.map(({ title }) => title)).toEqual(alerts.map(({ name }) => name));
    for (const [index, rule] of managed.entries()) {
      expect(rule.data[0]?.model.expr).toBe(alerts[index]?.expr);
      for (const { model } of rule.data) if (model.expr !== undefined) expect(faultsOf(model.expr)).toBe('');
    }
  });

  it('have short uids of their own, and no dollar sign that provisioning would expand', () => {
    expect(new Set(managed.map(({ uid }) => uid)).size).toBe(managed.length);
    for (const { uid, annotations } of managed) {
      expect(uid).toMatch(/^[a-z-]{1,40}$/);
      for (const text of Object.values(annotations)) expect(text.replaceAll('$$', '')).not.toContain('$');
    }
  });

  it('ask the provisioned data source', () => {
    const { datasources } = parse(read('grafana/provisioning/datasources/prometheus.yaml'));
    for (const { data } of managed) {
      expect((data[0] as unknown as { datasourceUid: string }).datasourceUid).toBe(datasources[0].uid);
    }
  });
});
