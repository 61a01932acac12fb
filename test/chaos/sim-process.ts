import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { FaultRule, LedgerEntry, SimRun, SimStats } from '../sim/index.js';

/** The simulator in its own process, steered over HTTP. */
export class SimProcess {
  private constructor(
    private readonly child: ChildProcess,
    readonly port: number,
  ) {}

  static async start(seed: number): Promise<SimProcess> {
    const entry = fileURLToPath(new URL('sim.ts', import.meta.url));
    const child = spawn(process.execPath, ['--import', 'tsx', entry, String(seed)], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const [port] = (await once(child, 'message')) as [number];
    return new SimProcess(child, port);
  }

  addFault(rule: FaultRule): Promise<unknown> {
    return this.ask('/sim/faults', rule);
  }

  clearFaults(): Promise<unknown> {
    return this.ask('/sim/faults/clear', {});
  }

  async stats(): Promise<SimStats> {
    return (await this.ask('/sim/stats')) as SimStats;
  }

  async runs(): Promise<SimRun[]> {
    return (await this.ask('/sim/runs')) as SimRun[];
  }

  /** All of it; throws when the simulator has forgotten some, which would prove nothing. */
  async ledger(...kinds: LedgerEntry['kind'][]): Promise<LedgerEntry[]> {
    const all: LedgerEntry[] = [];
    for (;;) {
      const since = all.at(-1)?.n ?? 0;
      const page = (await this.ask(`/sim/ledger?kind=${kinds.join(',')}&since=${since}`)) as {
        dropped: number;
        entries: LedgerEntry[];
      };
      if (page.dropped > 0) throw new Error(`the ledger dropped ${page.dropped} entries`);
      if (page.entries.length === 0) return all;
      all.push(...page.entries);
    }
  }

  async stop(): Promise<void> {
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exit;
  }

  private async ask(path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return response.json();
  }
}
