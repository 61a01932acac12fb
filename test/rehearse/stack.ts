import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { rules, writeFiles } from '../../grafana/src/generate.js';
import { Scale } from '../../grafana/src/scale.js';
import { AlertmanagerProcess } from '../alerts/alertmanager-process.js';
import { PrometheusProcess } from '../alerts/prometheus-process.js';
import { queriesIn, readRunbook, sectionOf } from '../alerts/runbook.js';
import { Disk } from '../chaos/nemesis.js';
import { RedisProcess } from '../redis/redis-process.js';
import { startSim } from '../sim/index.js';
import { usualWeek } from './history.js';
import { type Incident, owns, type Scene } from './incident.js';
import { Traffic, yellowPages } from './traffic.js';
import { type Firing, Watch } from './watch.js';
import { Webhook } from './webhook.js';
import { buildWorker, RehearsedWorker } from './workers.js';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
export const prefix = '{rehearse}';
/** Has traffic while things go wrong under all servers. */
export const steady = 'steady';
const workerCount = 2;
/** As in the Prometheus configuration that is shipped. */
const scrapeEverySecs = 15;
export const maxMemory = '128mb';

export interface StackOptions {
  readonly incidents: readonly Incident[];
  readonly windowFactor: number;
  readonly seed: number;
  readonly onAlert: (firing: Firing) => void;
}

interface Parts {
  readonly dir: string;
  readonly scale: Scale;
  readonly redis: RedisProcess;
  readonly disk: Disk;
  readonly client: Redis;
  readonly queue: Queue;
  readonly workers: readonly RehearsedWorker[];
  readonly scenes: ReadonlyMap<string, Omit<Scene, 'stack'>>;
  readonly webhook: Webhook;
  readonly alertmanager: AlertmanagerProcess;
  readonly prometheus: PrometheusProcess;
  readonly watch: Watch;
}

/** All that an installation has: Redis, workers, servers, Prometheus, Alertmanager and somebody who is told. */
export class Stack {
  private constructor(private readonly parts: Parts) {
    process.once('exit', this.abandon);
  }

  static async start({ incidents, windowFactor, seed, onAlert }: StackOptions): Promise<Stack> {
    const dir = mkdtempSync(join(tmpdir(), 'trawl-rehearse-'));
    const disk = new Disk(dir);
    const redis = await RedisProcess.start(
      ...['--appendonly', 'yes', '--maxmemory-policy', 'noeviction', '--maxmemory', maxMemory],
    );
    const client = new Redis(redis.url, { maxRetriesPerRequest: 1, retryStrategy: () => 200 });
    const queue = new Queue('scrape', { connection: client, prefix, skipVersionCheck: true });
    for (const each of [client, queue]) each.on('error', () => {});
    const scenes = new Map<string, Omit<Scene, 'stack'>>();
    const servers: Record<string, unknown> = {};
    const ground: Pick<Incident, 'name' | 'sim' | 'config'> = { name: steady };
    for (const [index, { name, sim: options, config }] of [ground, ...incidents].entries()) {
      const sim = await startSim({ seed: seed + index, speed: 30, ...options });
      scenes.set(name, { server: name, sim, traffic: new Traffic(queue, name) });
      servers[name] = {
        url: sim.url,
        token: 'token-of-the-rehearsal',
        tools: [yellowPages],
        ...config,
        limits: { runs: 10, requestsPerSecond: 100, ...(config?.limits as object) },
      };
    }
    const entry = await buildWorker();
    const document = {
      prefix,
      servers,
      poll: { interval: '1s' },
      start: { timeout: `${Math.max(22, Math.round(300 * windowFactor))}s` },
      retry: { backoff: `${Math.max(1, Math.round(30 * windowFactor))}s` },
      results: { dir: disk.path },
      shutdown: { grace: '5s' },
    };
    const workers = await Promise.all(
      Array.from({ length: workerCount }, (_, index) =>
        RehearsedWorker.open({ index, dir, entry, redisPort: redis.port, windowFactor, config: document }),
      ),
    );
    await Promise.all(workers.map((worker) => worker.start()));
    const webhook = await Webhook.open();
    writeFiles(dir, rules({ windowFactor, receivers: webhook.integrations }));
    const alertmanager = await AlertmanagerProcess.start(join(dir, 'prometheus/alertmanager.yml'));
    const prometheus = await PrometheusProcess.start({
      targets: workers.map(({ target }) => target),
      windowFactor,
      alertmanager: alertmanager.address,
      // Not oftener than every 2 s, or a worker that has no CPU for a second is taken for a dead one.
      everyMs: Math.max(2_000, scrapeEverySecs * 1_000 * windowFactor),
      history: usualWeek(windowFactor, Date.now()),
    });
    const watch = new Watch(prometheus, webhook, onAlert);
    const scale = new Scale(windowFactor);
    return new Stack({
      ...{ dir, scale, redis, disk, client, queue, workers, scenes },
      ...{ webhook, alertmanager, prometheus, watch },
    });
  }

  get dir() {
    return this.parts.dir;
  }
  get redis() {
    return this.parts.redis;
  }
  get disk() {
    return this.parts.disk;
  }
  get client() {
    return this.parts.client;
  }
  get queue() {
    return this.parts.queue;
  }
  get workers() {
    return this.parts.workers;
  }
  get prometheus() {
    return this.parts.prometheus;
  }
  get alertmanager() {
    return this.parts.alertmanager;
  }
  get watch() {
    return this.parts.watch;
  }

  /** trawl.yaml for commands beside the workers. */
  get config(): string {
    return join(this.parts.dir, 'worker-0.yaml');
  }

  /** What somebody was told of an incident. */
  told(incident: Incident): string {
    const alerts = this.watch
      .notified(0, (labels) => owns(incident, labels))
      .flatMap((each) => each.alerts.filter(({ status }) => status === 'firing'));
    return alerts
      .map(({ labels, annotations }) => `${labels.alertname}: ${annotations.description}`)
      .join('\n');
  }

  /** What the runbook of an incident's alert says to check, as far as it is queries: those that return nothing. */
  async silentQueries({ name, expected }: Incident): Promise<string[]> {
    if (expected === null) return [];
    const queries = queriesIn(sectionOf(readRunbook(`${expected}.md`), 'How to check'));
    const asked = queries.map(async (query) => {
      const named = query.replaceAll('SERVER', name).replaceAll('TOOL', yellowPages);
      return { query, samples: await this.prometheus.query(named) };
    });
    return (await Promise.all(asked))
      .filter(({ samples }) => samples.every(({ value }) => Number.isNaN(value)))
      .map(({ query }) => query);
  }

  /** Milliseconds here for seconds of a real night. */
  ms(seconds: number): number {
    return this.parts.scale.seconds(seconds) * 1_000;
  }

  scene(name: string): Scene {
    const scene = this.parts.scenes.get(name);
    if (scene === undefined) throw new Error(`no server ${name}`);
    return { ...scene, stack: this };
  }

  /** A command of ours, as an operator types it. @throws when it fails */
  async trawl(...args: readonly string[]): Promise<void> {
    const cli = ['--import', 'tsx', join(root, 'src/cli/bin.ts')];
    await run(process.execPath, [...cli, ...args, '--config', this.config], { cwd: root });
  }

  /** One after another, so that somebody always works. */
  async restartWorkers(without: readonly string[] = []): Promise<void> {
    for (const worker of this.workers) {
      await worker.end('SIGTERM');
      await worker.start(without);
    }
  }

  async stop(): Promise<void> {
    const { scenes, watch, prometheus, alertmanager, webhook, workers, queue, client, redis } = this.parts;
    for (const { traffic } of scenes.values()) traffic.stop();
    await watch.stop();
    await Promise.all([prometheus.stop(), alertmanager.stop()]);
    await webhook.close();
    await Promise.all(workers.map((worker) => worker.close()));
    await queue.close().catch(() => {});
    client.disconnect();
    await Promise.all([...scenes.values()].map(({ sim }) => sim.close()));
    await redis.stop();
    process.off('exit', this.abandon);
  }

  removeFiles(): void {
    rmSync(this.parts.dir, { recursive: true, force: true });
  }

  /** The workers and the bundle end with this process by themselves. */
  private readonly abandon = (): void => {
    this.parts.redis.signal('SIGKILL');
    this.parts.prometheus.abandon();
    this.parts.alertmanager.abandon();
  };
}
