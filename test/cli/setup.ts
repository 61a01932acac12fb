import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { main } from '../../src/cli/main.js';
import { accepts } from '../../src/redis/private-process.js';

export const yellowPages = 'trudax/yellow-pages-us-scraper';
export const places = 'compass/crawler-google-places';

export interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A folder of its own with a configuration, in which commands are run. */
export class Folder {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'trawl-cli-')));

  constructor(
    servers: Record<string, unknown>,
    readonly extra: Record<string, unknown> = {},
  ) {
    this.write('trawl.yaml', stringify({ servers, poll: { interval: 1 }, http: { port: 0 }, ...extra }));
  }

  write(name: string, content: string | Buffer): string {
    const path = join(this.path, name);
    writeFileSync(path, content);
    return path;
  }

  /** One job a line; `input.sim` steers the simulated run. */
  jobs(name: string, jobs: readonly Record<string, unknown>[]): void {
    this.write(name, jobs.map((job) => `${JSON.stringify({ tool: yellowPages, ...job })}\n`).join(''));
  }

  /** Runs a command in this process. */
  async trawl(...args: string[]): Promise<Said> {
    const before = process.cwd();
    const out: string[] = [];
    const err: string[] = [];
    const restore = [capture(process.stdout, out), capture(process.stderr, err)];
    process.chdir(this.path);
    try {
      const code = await main(args);
      return { code, out: out.join(''), err: err.join('') };
    } finally {
      process.chdir(before);
      for (const undo of restore) undo();
    }
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

function capture(stream: NodeJS.WriteStream, into: string[]): () => void {
  const write = stream.write;
  stream.write = ((chunk: string | Uint8Array, encoding?: unknown, done?: unknown) => {
    into.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString());
    const callback = typeof encoding === 'function' ? encoding : done;
    if (typeof callback === 'function') callback();
    return true;
  }) as typeof stream.write;
  return () => {
    stream.write = write;
  };
}

/** A command in a process of its own, from the built program. */
export class Program {
  readonly lines: string[] = [];
  private out = '';
  private readonly child;
  private readonly waiters = new Set<() => void>();
  readonly ended: Promise<{ code: number | null; signal: string | null }>;

  constructor(build: string, cwd: string, args: readonly string[], nodeArgs: readonly string[] = []) {
    this.child = spawn(process.execPath, [...nodeArgs, join(build, 'src', 'cli', 'bin.js'), ...args], {
      cwd,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout.on('data', (chunk: Buffer) => {
      this.out += chunk.toString();
    });
    createInterface({ input: this.child.stderr }).on('line', (line) => {
      this.lines.push(line);
      for (const waiter of this.waiters) waiter();
    });
    this.ended = once(this.child, 'close').then(([code, signal]) => ({ code, signal }));
  }

  get stdout(): string {
    return this.out;
  }

  get output(): NodeJS.ReadableStream {
    return this.child.stdout;
  }

  /** Resolves once stderr has had a line that matches; rejects when the program ends without one. */
  async says(pattern: RegExp): Promise<string> {
    const found = () => this.lines.find((line) => pattern.test(line));
    const seen = new Promise<string>((resolve) => {
      const look = () => {
        const line = found();
        if (line === undefined) return;
        this.waiters.delete(look);
        resolve(line);
      };
      this.waiters.add(look);
      look();
    });
    const end = this.ended.then(() => {
      const line = found();
      if (line !== undefined) return line;
      throw new Error(`ended without saying ${pattern}:\n${this.lines.join('\n')}\n${this.out}`);
    });
    return Promise.race([seen, end]);
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

/** Ends the private Redis of a folder whose test went wrong, so that it does not stay behind. */
export async function stopPrivateRedis(socket: string): Promise<void> {
  if (!(await accepts(socket))) return;
  const client = new Redis({ path: socket, retryStrategy: () => null, lazyConnect: true });
  client.on('error', () => {});
  await client.connect();
  await client.call('SHUTDOWN', 'NOSAVE').catch(() => {});
  client.disconnect();
}
