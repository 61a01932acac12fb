import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { createProgram } from '../../src/cli/main.js';
import { loadConfig } from '../../src/config.js';
import { createMetrics } from '../../src/metrics/index.js';
import { read, root } from './support.js';

const guide = read('docs/deploy.md');
const blocks = (language: string): string[] =>
  [...guide.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .filter(([, each]) => each === language)
    .map(([, , text = '']) => text);
const shell = blocks('sh').join('\n');
const yaml = blocks('yaml').map((text) => parse(text));
const services = parse(read('docker-compose.yml')).services as Record<string, object>;
let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'trawl-guide-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe('docs/deploy.md', () => {
  it('links to what is there', () => {
    const anchors = [...guide.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
      title.toLowerCase().replaceAll(' ', '-'),
    );
    const links = [...guide.matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link);
    expect(links.length).toBeGreaterThan(5);
    for (const link of links) {
      if (link.startsWith('#')) expect(anchors).toContain(link.slice(1));
      else expect(existsSync(join(root, 'docs', link)), link).toBe(true);
    }
  });

  it('names files of the repository that are there', () => {
    const paths = [...guide.matchAll(/(?<![\w/.])(?:\.\/)?((?:deploy|grafana|scripts|docs)\/[\w@./-]*\w)/g)];
    expect(paths.length).toBeGreaterThan(15);
    for (const [, path = ''] of paths) expect(existsSync(join(root, path)), path).toBe(true);
  });

  it('types commands of trawl and of npm that there are', async () => {
    const program = await createProgram();
    const commands = [...shell.matchAll(/(?:^|worker |-- )trawl ([a-z-]+)([^\n<>#]*)/gm)];
    expect(new Set(commands.map(([, name]) => name))).toEqual(
      new Set(['doctor', 'submit', 'status', 'export']),
    );
    for (const [, name, rest = ''] of commands) {
      const command = program.commands.find((each) => each.name() === name);
      const known = [...(command?.options ?? []), ...program.options].map(({ long }) => long);
      for (const option of rest.match(/--[a-z-]+/g) ?? [])
        expect(known, `${name} ${option}`).toContain(option);
    }
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    for (const [, name = ''] of guide.matchAll(/npm run ([\w:-]+)/g)) expect(scripts).toHaveProperty([name]);
  });

  it('names services of the compose file', () => {
    const verbs = 'exec(?: -T)?|restart|up -d(?: --no-deps)?|build --pull|stop';
    const named = [
      ...shell.matchAll(new RegExp(`docker compose (?:${verbs}) (?:-\\S+ \\S+ )*([a-z]+)`, 'g')),
    ];
    expect(named.length).toBeGreaterThan(10);
    for (const [line, name = ''] of named) expect(Object.keys(services), line).toContain(name);
    for (const { services: overridden } of yaml.filter((each) => each.services !== undefined)) {
      for (const name of Object.keys(overridden)) expect(Object.keys(services)).toContain(name);
    }
  });

  it('names metrics that there are', () => {
    const { registry } = createMetrics({ version: '0.1.0', servers: {}, process: true });
    const named = [...guide.matchAll(/`(trawl_(?!queue`|results`)\w+)`/g)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(2);
    for (const name of named) expect(registry.getSingleMetric(name), name).toBeDefined();
  });

  it('shows settings of trawl.yaml that load', () => {
    const settings = yaml.filter((each) => each.prefix !== undefined);
    expect(settings).toHaveLength(1);
    const text = stringify({ ...settings[0], servers: { apify: { tools: ['a/b'] } } });
    expect(loadConfig({ text, env: {}, cwd: root }).prefix).toBe('{trawl-staging}');
  });

  it('shows receivers that Alertmanager takes, in place of the empty ones, with every secret in a file', () => {
    const shown = yaml.find((each) => each.receivers !== undefined);
    const shipped = parse(read('grafana/prometheus/alertmanager.yml'));
    const names = (receivers: { name: string }[]) => receivers.map(({ name }) => name);
    expect(names(shown.receivers)).toEqual(names(shipped.receivers));
    const file = join(dir, 'alertmanager.yml');
    writeFileSync(file, stringify({ ...shipped, ...shown }));
    const amtool = spawnSync('amtool', ['check-config', file], { encoding: 'utf8' });
    expect(amtool.stdout + amtool.stderr).toContain('SUCCESS');
    const files = [...JSON.stringify(shown).matchAll(/"\w+_file":"\/run\/secrets\/([\w-]+)"/g)].map(
      ([, name]) => name,
    );
    expect(files).toHaveLength(3);
    const override = yaml.find((each) => each.services?.alertmanager !== undefined);
    expect(override.services.alertmanager.secrets).toEqual(files);
    expect(Object.keys(override.secrets)).toEqual(files);
  });

  it.each([
    ['all idle', { 'scrape,waiting': 0, 'start-a,prioritized': 0 }, 0],
    [
      'polls and pages that are due',
      { 'poll-a,waiting': 250, 'pages-a,active': 30, 'scrape,waiting': 20 },
      300,
    ],
    ['polls that are not due yet', { 'poll-a,delayed': 5000 }, 0],
    [
      'starts, as many as there are free slots',
      { 'start-a,prioritized': 9000, 'poll-a,waiting': 10 },
      12 + 10,
    ],
    ['starts of a held server', { 'start-held,prioritized': 9000, 'poll-a,waiting': 10 }, 10],
    ['a few starts', { 'start-a,prioritized': 5 }, 5],
  ])('scales by what is due: %s', (_what, jobs, expected) => {
    const query = parse(read('deploy/kubernetes/keda/scaled-object.yaml')).spec.triggers[0].metadata.query;
    // Every state of every queue is always said.
    const series = Object.entries({ 'scrape,waiting': 0, ...jobs }).flatMap(([each, count]) => {
      const [queue, state] = each.split(',');
      // Two processes said it lately: the elected one, and the one before it.
      return ['w1', 'w2'].map((instance) => ({
        series: `trawl_queue_jobs{queue="${queue}",state="${state}",instance="${instance}"}`,
        values: `${count}`,
      }));
    });
    const gauges = [
      ['trawl_run_slots{server="a"}', 32],
      ['trawl_runs_in_flight{server="a"}', 20],
      ['trawl_server_held{server="a",reason="auth"}', 0],
      ['trawl_run_slots{server="held"}', 32],
      ['trawl_runs_in_flight{server="held"}', 0],
      ['trawl_server_held{server="held",reason="auth"}', 1],
    ].map(([name, value]) => ({ series: name, values: `${value}` }));
    const file = join(dir, 'due.yml');
    const test = {
      input_series: [...series, ...gauges],
      promql_expr_test: [{ expr: query, eval_time: '0m', exp_samples: [{ labels: '{}', value: expected }] }],
    };
    writeFileSync(file, stringify({ tests: [test] }));
    const promtool = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
    expect(promtool.stdout + promtool.stderr).toContain('SUCCESS');
  });
});
