import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../redis/redis-process.js';

type Labels = Readonly<Record<string, string>>;

/** A real Alertmanager, alone. */
export class AlertmanagerProcess {
  private constructor(
    private readonly child: ChildProcess,
    private readonly dir: string,
    /** host:port */
    readonly address: string,
  ) {}

  /** @param config path of its configuration */
  static async start(config: string): Promise<AlertmanagerProcess> {
    const dir = mkdtempSync(join(tmpdir(), 'trawl-alertmanager-'));
    const address = `127.0.0.1:${await freePort()}`;
    const child = spawn(
      binary(),
      [
        `--config.file=${config}`,
        `--storage.path=${dir}`,
        `--web.listen-address=${address}`,
        '--cluster.listen-address=',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream });
    const said: string[] = [];
    let listens = false;
    for await (const line of lines) {
      said.push(line);
      listens = /Listening on/.test(line);
      if (listens) break;
    }
    if (!listens) throw new Error(`alertmanager ended: ${said.slice(-3).join(' ')}`);
    child.stderr?.resume();
    return new AlertmanagerProcess(child, dir, address);
  }

  /** Labels of the alerts that are muted now. Muting follows what was posted by some milliseconds. */
  async muted(): Promise<Labels[]> {
    const all = (await (await fetch(this.alerts)).json()) as { labels: Labels; status: { state: string } }[];
    return all.filter(({ status }) => status.state === 'suppressed').map(({ labels }) => labels);
  }

  fire(alerts: readonly Labels[]): Promise<void> {
    return this.post(alerts, 600_000);
  }

  resolve(alerts: readonly Labels[]): Promise<void> {
    return this.post(alerts, -1_000);
  }

  private get alerts(): string {
    return `http://${this.address}/api/v2/alerts`;
  }

  private async post(firing: readonly Labels[], endsInMs: number): Promise<void> {
    const now = Date.now();
    const body = firing.map((labels) => ({
      labels,
      startsAt: new Date(now - 60_000).toISOString(),
      endsAt: new Date(now + endsInMs).toISOString(),
    }));
    const answer = await fetch(this.alerts, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(await answer.text());
  }

  async stop(): Promise<void> {
    const ended = this.child.exitCode === null ? once(this.child, 'exit') : Promise.resolve();
    this.child.kill();
    await ended;
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** As at the exit of this process, where nothing can be waited for. */
  abandon(): void {
    this.child.kill('SIGKILL');
    rmSync(this.dir, { recursive: true, force: true });
  }
}

function binary(): string {
  const names = ['alertmanager', 'prometheus-alertmanager'];
  const paths = (process.env.PATH ?? '')
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)));
  const found = paths.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (found === undefined) throw new Error('no alertmanager on the PATH: npm run ensure-prometheus');
  return found;
}
