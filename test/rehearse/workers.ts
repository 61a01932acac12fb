import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { stringify } from 'yaml';
import { TcpProxy } from '../chaos/proxy.js';
import { freePort } from '../redis/redis-process.js';
import type { WorkerSettings } from './worker.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The worker as one plain file, where its imports resolve: a process that comes back compiles nothing. */
export async function buildWorker(): Promise<string> {
  const file = join(root, 'node_modules', `.trawl-rehearse-${process.pid}.mjs`);
  await build({
    entryPoints: [fileURLToPath(new URL('worker.ts', import.meta.url))],
    outfile: file,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
  });
  process.once('exit', () => rmSync(file, { force: true }));
  return file;
}

export interface WorkerOptions {
  readonly index: number;
  readonly dir: string;
  /** From `buildWorker`. */
  readonly entry: string;
  readonly redisPort: number;
  readonly windowFactor: number;
  /** trawl.yaml but for `redis` and `http`, which are each worker's own. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** A worker process with a way to Redis of its own, which can stand still. */
export class RehearsedWorker {
  private child: ChildProcess | null = null;

  private constructor(
    private readonly options: WorkerOptions,
    readonly redis: TcpProxy,
    private readonly httpPort: number,
  ) {}

  static async open(options: WorkerOptions): Promise<RehearsedWorker> {
    const [redis, port] = await Promise.all([TcpProxy.open(options.redisPort), freePort()]);
    return new RehearsedWorker(options, redis, port);
  }

  /** host:port of its metrics. */
  get target(): string {
    return `127.0.0.1:${this.httpPort}`;
  }

  get running(): boolean {
    return this.child !== null;
  }

  /** @param without servers that are left out of its configuration */
  async start(without: readonly string[] = []): Promise<void> {
    const { dir, index, entry, windowFactor } = this.options;
    const config = join(dir, `worker-${index}.yaml`);
    writeFileSync(config, stringify(this.document(without)));
    const settings: WorkerSettings = { config, log: join(dir, `worker-${index}.log`), windowFactor };
    const errorFile = join(dir, `worker-${index}.err`);
    const errors = openSync(errorFile, 'a');
    const child = spawn(process.execPath, [entry, JSON.stringify(settings)], {
      cwd: root,
      stdio: ['ignore', errors, errors, 'ipc'],
    });
    this.child = child;
    child.once('exit', () => {
      this.child = null;
    });
    const ready = await Promise.race([
      once(child, 'message').then(() => true),
      once(child, 'exit').then(() => false),
    ]);
    if (!ready)
      throw new Error(`worker ${index} did not start: ${readFileSync(errorFile, 'utf8').slice(-500)}`);
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const { child } = this;
    if (child === null) return;
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }

  async close(): Promise<void> {
    await this.end('SIGKILL');
    await this.redis.close();
  }

  private document(without: readonly string[]): Record<string, unknown> {
    const { servers, ...rest } = this.options.config as { servers: Record<string, unknown> };
    const left = Object.entries(servers).filter(([name]) => !without.includes(name));
    return {
      ...rest,
      servers: Object.fromEntries(left),
      redis: { url: `redis://127.0.0.1:${this.redis.port}` },
      http: { port: this.httpPort },
    };
  }
}
