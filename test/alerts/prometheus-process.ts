import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { stringify } from 'yaml';
import { rules, writeFiles } from '../../grafana/src/generate.js';
import { freePort } from '../redis/redis-process.js';

export interface PrometheusOptions {
  /** host:port of the workers, as the job `trawl`. */
  readonly targets: readonly string[];
  /** Of the rules' windows; 1/60 has an hour pass in a minute. */
  readonly windowFactor: number;
  /** host:port of an Alertmanager; absent: alerts go nowhere. */
  readonly alertmanager?: string;
  /** Between two looks at the workers and two turns of the rules; default 1000. */
  readonly everyMs?: number;
  /** Samples from before the start, in OpenMetrics' text format: what a server that has run for a week would know. */
  readonly history?: string;
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A real Prometheus with our rules. */
export class PrometheusProcess {
  private constructor(
    private readonly child: ChildProcess,
    private readonly dir: string,
    readonly url: string,
  ) {}

  static async start(options: PrometheusOptions): Promise<PrometheusProcess> {
    const { targets, windowFactor, alertmanager, everyMs = 1_000, history } = options;
    const every = `${Math.round(everyMs)}ms`;
    const dir = mkdtempSync(join(tmpdir(), 'trawl-prometheus-'));
    writeFiles(dir, rules({ windowFactor }));
    const alertmanagers =
      alertmanager === undefined ? [] : [{ static_configs: [{ targets: [alertmanager] }] }];
    const config = {
      global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: every },
      rule_files: ['prometheus/rules/*.yml'],
      alerting: { alertmanagers },
      scrape_configs: [{ job_name: 'trawl', static_configs: [{ targets }] }],
    };
    writeFileSync(join(dir, 'prometheus.yml'), stringify(config));
    if (history !== undefined) backfill(dir, history);
    const port = await freePort();
    const child = spawn(
      'prometheus',
      [
        `--config.file=${join(dir, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(dir, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=error',
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    const prometheus = new PrometheusProcess(child, dir, `http://127.0.0.1:${port}`);
    await prometheus.ready();
    return prometheus;
  }

  private async ready(): Promise<void> {
    for (let tries = 0; tries < 200; tries += 1) {
      if (this.child.exitCode !== null) throw new Error(`prometheus ended with ${this.child.exitCode}`);
      const answer = await fetch(`${this.url}/-/ready`).catch(() => null);
      if (answer?.ok) return;
      await delay(100);
    }
    throw new Error('prometheus is not ready after 20 s');
  }

  /** An instant query, now. @throws with Prometheus's own sentence when it refuses the query */
  async query(expr: string): Promise<Sample[]> {
    const answer = await fetch(`${this.url}/api/v1/query`, {
      method: 'POST',
      body: new URLSearchParams({ query: expr }),
    });
    const body = (await answer.json()) as {
      error?: string;
      data?: { resultType: string; result: { metric: Record<string, string>; value: [number, string] }[] };
    };
    if (body.data === undefined) throw new Error(`${expr}: ${body.error}`);
    return body.data.result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
  }

  async stop(): Promise<void> {
    const ended = this.child.exitCode === null ? once(this.child, 'exit') : Promise.resolve();
    this.child.kill();
    await ended;
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** The least that can be done where nothing can be waited for, as at the exit of this process. */
  abandon(): void {
    this.child.kill('SIGKILL');
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Makes blocks of the samples, as Prometheus would have written them itself. */
function backfill(dir: string, history: string): void {
  const file = join(dir, 'history.txt');
  writeFileSync(file, history);
  const args = ['tsdb', 'create-blocks-from', 'openmetrics', file, join(dir, 'data')];
  const { status, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`promtool could not make blocks of the history: ${stderr}`);
}
