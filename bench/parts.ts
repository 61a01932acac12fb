import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A child that runs one of our TypeScript files and talks over IPC. */
export async function forkPart(
  file: string,
  message: unknown,
): Promise<{ child: ChildProcess; ready: unknown }> {
  const child = fork(new URL(file, import.meta.url), [], {
    // The SDK's own loop puts a listener on one signal for each call; Node warns of every one of them.
    execArgv: ['--no-warnings', '--import', 'tsx'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  child.send(message as object);
  const [ready] = await once(child, 'message');
  return { child, ready };
}

export async function ask(child: ChildProcess, message: unknown): Promise<unknown> {
  child.send(message as object);
  const [answer] = await once(child, 'message');
  return answer;
}

/** A Redis as Trawl's private one is set up, without the durability of its folder. */
export async function startRedis(): Promise<{ url: string; stop(): void }> {
  const dir = mkdtempSync(join(tmpdir(), 'trawl-bench-'));
  const port = await freePort();
  const settings = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec', '--hz', '100'];
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, ...settings],
    {
      stdio: 'ignore',
    },
  );
  await new Promise((resolve) => setTimeout(resolve, 300));
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: () => {
      child.kill('SIGKILL');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}
