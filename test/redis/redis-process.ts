import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findRedisBinary } from '../../src/redis/find-binary.js';
import { accepts } from '../../src/redis/private-process.js';

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** A real Redis of a test, which can be taken away and brought back. */
export class RedisProcess {
  private readonly dir = mkdtempSync(join(tmpdir(), 'trawl-test-redis-'));
  private child: ChildProcess | null = null;

  private constructor(
    readonly port: number,
    private readonly args: readonly string[],
  ) {}

  static async start(...args: string[]): Promise<RedisProcess> {
    const redis = await RedisProcess.reserve(...args);
    await redis.up();
    return redis;
  }

  /** Has a port, and does not run yet. */
  static async reserve(...args: string[]): Promise<RedisProcess> {
    return new RedisProcess(await freePort(), args);
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  get socket(): string {
    return join(this.dir, 's');
  }

  async up(): Promise<void> {
    const own = [
      '--port',
      String(this.port),
      '--bind',
      '127.0.0.1',
      '--unixsocket',
      this.socket,
      '--dir',
      this.dir,
    ];
    const child = spawn(findRedisBinary(process.env.PATH), [...own, '--save', '', ...this.args], {
      stdio: 'ignore',
    });
    this.child = child;
    while (!(await accepts(this.socket))) {
      if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode}`);
      await delay(5);
    }
  }

  async down(): Promise<void> {
    const { child } = this;
    this.child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }

  signal(name: NodeJS.Signals): void {
    this.child?.kill(name);
  }

  async stop(): Promise<void> {
    await this.down();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** A Sentinel of the group `main`, which fails over a second after its master is gone. */
export async function startSentinel(
  masterPort: number,
): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'trawl-sentinel-'));
  const file = join(folder, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor main 127.0.0.1 ${masterPort} 1`,
    'sentinel down-after-milliseconds main 1000',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const child = spawn(findRedisBinary(process.env.PATH), [file, '--sentinel'], { stdio: 'ignore' });
  return {
    port,
    async stop() {
      const exit = once(child, 'exit');
      child.kill('SIGKILL');
      await exit;
      rmSync(folder, { recursive: true });
    },
  };
}
