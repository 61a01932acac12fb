import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { stringify } from 'yaml';
import { TcpProxy } from './proxy.js';
import { notStarted, type WorkerSettings } from './worker-settings.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The worker as one plain file, made once: processes that are killed all the time should not compile TypeScript each time they
 * come back. It lies where its imports resolve; `remove` takes it away.
 */
export async function buildWorker(): Promise<{ readonly file: string; remove(): void }> {
  const file = join(root, 'node_modules', `.trawl-chaos-${process.pid}.mjs`);
  await build({
    entryPoints: [fileURLToPath(new URL('worker.ts', import.meta.url))],
    outfile: file,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
  });
  return { file, remove: () => rmSync(file, { force: true }) };
}

/** A worker process, its way to Redis, and its replacement whenever it ends. */
export class WorkerProcess {
  readonly log: string;
  /** From the end of one process until its successor works. */
  readonly recoveries: number[] = [];
  /** Ends that nobody brought about. */
  readonly crashes: string[] = [];
  readonly stops: number[] = [];
  /** Stopped, killed or leaving: no second fault of that sort meanwhile. */
  busy = false;
  private child: ChildProcess | null = null;
  private expectedEnd = false;
  private closed = false;
  private endedAt = Date.now();

  private constructor(
    readonly index: number,
    readonly redis: TcpProxy,
    private readonly settings: Omit<WorkerSettings, 'config' | 'redis' | 'log'>,
    private readonly entry: string,
    private readonly dir: string,
    private readonly pageBytes: () => number,
    private readonly config: Record<string, unknown>,
  ) {
    this.log = join(dir, `worker-${index}.log`);
  }

  static async open(options: {
    readonly index: number;
    readonly redisPort: number;
    readonly settings: Omit<WorkerSettings, 'config' | 'redis' | 'log'>;
    /** From `buildWorker`. */
    readonly entry: string;
    readonly dir: string;
    /** Asked at each start: promise 4 holds with any page size on the way. */
    readonly pageBytes: () => number;
    readonly config: Record<string, unknown>;
  }): Promise<WorkerProcess> {
    const { index, settings, entry, dir, pageBytes, config } = options;
    const redis = await TcpProxy.open(options.redisPort);
    return new WorkerProcess(index, redis, settings, entry, dir, pageBytes, config);
  }

  /** Resolves when the process works; one that cannot begin is started again. */
  async start(): Promise<void> {
    while (!this.closed) {
      const child = this.spawn();
      const ready = await Promise.race([
        once(child, 'message').then(() => true),
        once(child, 'exit').then(() => false),
      ]);
      if (ready) {
        this.recoveries.push(Date.now() - this.endedAt);
        return;
      }
      await delay(500);
    }
  }

  get running(): boolean {
    return this.child !== null;
  }

  async kill(): Promise<void> {
    await this.end('SIGKILL');
    await this.start();
  }

  async terminate(): Promise<void> {
    const began = Date.now();
    await this.end('SIGTERM');
    this.stops.push(Date.now() - began);
    await this.start();
  }

  async freeze(ms: number): Promise<void> {
    const { child } = this;
    child?.kill('SIGSTOP');
    await delay(ms);
    child?.kill('SIGCONT');
  }

  async close(): Promise<void> {
    this.closed = true;
    this.child?.kill('SIGCONT');
    await this.end('SIGKILL');
    await this.redis.close();
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this;
    if (child === null) return;
    this.expectedEnd = true;
    const exit = once(child, 'exit');
    child.kill(signal);
    const [code] = (await exit) as [number | null];
    if (signal === 'SIGTERM' && code !== 0) this.crashes.push(`worker ${this.index}: SIGTERM, exit ${code}`);
  }

  private spawn(): ChildProcess {
    const config = join(this.dir, `worker-${this.index}.yaml`);
    writeFileSync(config, stringify(this.configDocument()));
    const settings: WorkerSettings = {
      ...this.settings,
      config,
      redis: `redis://127.0.0.1:${this.redis.port}`,
      log: this.log,
    };
    const errors = openSync(join(this.dir, `worker-${this.index}.err`), 'a');
    const child = spawn(process.execPath, [this.entry, JSON.stringify(settings)], {
      cwd: root,
      stdio: ['ignore', errors, errors, 'ipc'],
    });
    this.child = child;
    this.expectedEnd = false;
    child.once('exit', (code, signal) => {
      this.child = null;
      this.endedAt = Date.now();
      if (this.expectedEnd || this.closed || code === notStarted) return;
      this.crashes.push(`worker ${this.index}: ${signal ?? `exit ${code}`}`);
      void delay(500).then(() => this.start());
    });
    return child;
  }

  private configDocument(): Record<string, unknown> {
    const { results, ...rest } = this.config as { results: Record<string, unknown> };
    return {
      ...rest,
      redis: { url: `redis://127.0.0.1:${this.redis.port}` },
      results: { ...results, pageBytes: this.pageBytes() },
    };
  }
}
