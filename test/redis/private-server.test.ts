import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { prepareDataFolder, socketPathFor } from '../../src/redis/private-folder.js';
import { acquirePrivateRedis } from '../../src/redis/private-server.js';
import { stateOf } from '../../src/redis/process-identity.js';

let root: string;
let dir: string;
const users: User[] = [];

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'trawl-redis-')));
  dir = join(root, 'redis');
});

afterEach(async () => {
  await Promise.all(users.splice(0).map((user) => user.kill()));
  const server = serverOf(dir);
  if (server !== null && stateOf(server) === 'alive') process.kill(server.pid, 'SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

interface Line {
  done?: string;
  url?: string;
  log?: string;
  message?: string;
  failed?: string;
}

/** A real process that joins and leaves on command. */
class User {
  private readonly lines: Line[] = [];
  private readonly waiting = new Set<() => void>();

  private constructor(readonly child: ChildProcessByStdio<Writable, Readable, null>) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.lines.push(JSON.parse(line) as Line);
      for (const wake of this.waiting) wake();
    });
  }

  static start(env: Record<string, string> = {}): User {
    const script = join(import.meta.dirname, 'private-user.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', script, dir, root], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    });
    const user = new User(child);
    users.push(user);
    return user;
  }

  tell(command: string): void {
    this.child.stdin.write(`${command}\n`);
  }

  async expect(match: (line: Line) => boolean): Promise<Line> {
    for (;;) {
      const index = this.lines.findIndex((line) => match(line) || line.failed !== undefined);
      const line = this.lines[index];
      if (line !== undefined) {
        this.lines.splice(index, 1);
        if (line.failed !== undefined) throw new Error(line.failed);
        return line;
      }
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.waiting.delete(wake);
          resolve();
        };
        this.waiting.add(wake);
      });
    }
  }

  async do(command: 'join' | 'leave' | `storm ${number}`): Promise<Line> {
    this.tell(command);
    return this.expect((line) => line.done === command.split(' ')[0]);
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exit;
  }
}

function serverOf(folder: string) {
  try {
    return JSON.parse(readFileSync(join(folder, 'server.json'), 'utf8')) as {
      pid: number;
      started: string;
      host: string;
    };
  } catch {
    return null;
  }
}

async function ask<T>(url: string, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis({ path: url });
  client.on('error', () => {});
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}

const runId = (url: string) =>
  ask(url, async (client) => /run_id:(\w+)/.exec(await client.info('server'))?.[1]);

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const acquire = () => acquirePrivateRedis({ dir, path: process.env.PATH, log: quiet, tmp: root });

describe('a private Redis', () => {
  it('is shared by the processes of a folder, stopped by the last, and keeps its data', async () => {
    const [a, b] = [User.start({ APIFY_TOKEN: 'canary-token' }), User.start()];
    const { url = '' } = await a.do('join');
    expect((await b.do('join')).url).toBe(url);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    const pid = serverOf(dir)?.pid ?? 0;
    if (process.platform === 'linux') {
      expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('canary-token');
      const [, , group] = (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1] ?? '').split(' ');
      expect(group).toBe(String(pid));
    }
    const policy = await ask(url, async (client) => client.config('GET', 'maxmemory-policy'));
    expect(policy).toEqual(['maxmemory-policy', 'noeviction']);
    await ask(url, (client) => client.set('kept', 'yes'));
    await a.do('leave');
    expect(await ask(url, (client) => client.get('kept'))).toBe('yes');
    await b.do('leave');
    expect(existsSync(url)).toBe(false);
    expect(serverOf(dir)).toBeNull();
    const again = await acquire();
    expect(await ask(again.url, (client) => client.get('kept'))).toBe('yes');
    await again.release();
    await again.release();
    expect(existsSync(url)).toBe(false);
  });

  it('does not count a user that was killed', async () => {
    const [a, b] = [User.start(), User.start()];
    const { url = '' } = await a.do('join');
    await b.do('join');
    await a.kill();
    await b.do('leave');
    expect(existsSync(url)).toBe(false);
  });

  it('that a crash left behind is used on, then stopped', async () => {
    const a = User.start();
    const { url = '' } = await a.do('join');
    const first = await runId(url);
    await a.kill();
    const mine = await acquire();
    expect(await runId(mine.url)).toBe(first);
    await mine.release();
    expect(existsSync(url)).toBe(false);
  });

  it('comes up once when many start at the same moment', async () => {
    const many = [User.start(), User.start(), User.start()];
    const joined = await Promise.all([...many.map((user) => user.do('join')), acquire(), acquire()]);
    const urls = joined.map((one) => one.url ?? '');
    expect(new Set(await Promise.all(urls.map(runId))).size).toBe(1);
    const own = joined.flatMap((one) => ('release' in one ? [one.release()] : []));
    await Promise.all([...many.map((user) => user.do('leave')), ...own]);
    expect(existsSync(urls[0] ?? '')).toBe(false);
  });

  it('loses nothing when leavers and newcomers cross, with users killed in between', async () => {
    const storms = [User.start(), User.start()];
    const victim = User.start();
    victim.tell('storm 1000');
    const done = Promise.all(storms.map((user) => user.do('storm 25')));
    await acquire().then((mine) => mine.release());
    await victim.kill();
    await done;
    const mine = await acquire();
    // The victim's count is not known; that of the others is the least there can be.
    expect(Number(await ask(mine.url, (client) => client.get('count')))).toBeGreaterThanOrEqual(50);
    await mine.release();
    expect(serverOf(dir)).toBeNull();
    expect(readdirSync(dir).filter((name) => name.startsWith('lock'))).toEqual([]);
  });

  it('is started again, and says so, when it dies in use', async () => {
    const user = User.start();
    const { url = '' } = await user.do('join');
    await ask(url, (client) => client.set('kept', 'yes'));
    const first = await runId(url);
    process.kill(serverOf(dir)?.pid ?? Number.NaN, 'SIGKILL');
    expect((await user.expect((line) => line.log === 'error')).message).toMatch(/ended while in use/);
    await user.expect((line) => line.log === 'warn');
    expect(await runId(url)).not.toBe(first);
    expect(await ask(url, (client) => client.get('kept'))).toBe('yes');
    await user.do('leave');
    expect(existsSync(url)).toBe(false);
  });

  it('takes over a lock whose holder died, and no other', async () => {
    mkdirSync(dir, { mode: 0o700 });
    const dead = spawn(process.execPath, ['-e', '']);
    await once(dead, 'exit');
    const lock = { pid: dead.pid, started: '1', host: hostname() };
    writeFileSync(join(dir, 'lock'), JSON.stringify({ ...lock, nonce: '0123456789abcdef' }));
    // Whoever was breaking it died too.
    writeFileSync(join(dir, 'lock.0123456789abcdef'), JSON.stringify({ ...lock, nonce: 'fedcba9876543210' }));
    const both = await Promise.all([acquire(), acquire()]);
    await Promise.all(both.map((one) => one.release()));
    expect(serverOf(dir)).toBeNull();
  });

  it('whose socket was deleted under it gives the data to a new one', async () => {
    const user = User.start();
    const { url = '' } = await user.do('join');
    await ask(url, (client) => client.set('kept', 'yes'));
    await user.kill();
    rmSync(url);
    const mine = await acquire();
    expect(await ask(mine.url, (client) => client.get('kept'))).toBe('yes');
    await mine.release();
  });

  it('needs a server on the PATH, and says so before it touches anything', async () => {
    const missing = acquirePrivateRedis({ dir, path: '/nonexistent:relative', log: quiet });
    await expect(missing).rejects.toMatchObject({ code: 'redis_binary_missing' });
    await expect(missing).rejects.toMatchObject({
      hint: expect.stringMatching(/apt-get.*brew.*dnf.*apk.*docker/s),
    });
    expect(existsSync(dir)).toBe(false);
  });

  it('that cannot start is reported with what it said', async () => {
    const bin = join(root, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'redis-server'), '#!/bin/sh\necho "Bad file format \x1b[31m"\nexit 1\n', {
      mode: 0o755,
    });
    const failed = acquirePrivateRedis({ dir, path: bin, log: quiet, tmp: root });
    await expect(failed).rejects.toMatchObject({
      code: 'redis_unreachable',
      message: expect.stringMatching(/code 1: Bad file format$/),
    });
  });
});

describe("the private Redis's socket", () => {
  const deep = () => prepareDataFolder(join(root, 'd'.repeat(60), 'e'.repeat(60)));

  it('goes to a 0700 folder under the temporary directory when its path is long', async () => {
    dir = deep();
    const mine = await acquire();
    expect(dirname(dirname(mine.url))).toBe(root);
    expect(statSync(dirname(mine.url)).mode & 0o777).toBe(0o700);
    expect(await ask(mine.url, (client) => client.ping())).toBe('PONG');
    await mine.release();
  });

  it.each([
    ['a symlink', (folder: string) => symlinkSync(root, folder)],
    [
      'open to others',
      (folder: string) => {
        mkdirSync(folder);
        chmodSync(folder, 0o777);
      },
    ],
    ['a file', (folder: string) => writeFileSync(folder, '')],
  ])('refuses a folder there that is %s', (_what, plant) => {
    const long = deep();
    const folder = dirname(socketPathFor(long, root));
    rmSync(folder, { recursive: true });
    plant(folder);
    expect(() => socketPathFor(long, root)).toThrowError(expect.objectContaining({ code: 'redis_unfit' }));
  });

  it('refuses a temporary directory that is too long as well', () => {
    const long = deep();
    expect(() => socketPathFor(long, long)).toThrowError(/too long/);
  });
});
