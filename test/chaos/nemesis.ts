import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { RedisProcess } from '../redis/redis-process.js';
import type { HarnessFault, PlannedFault } from './plan.js';
import type { TcpProxy } from './proxy.js';
import type { SimProcess } from './sim-process.js';
import type { WorkerProcess } from './worker-processes.js';

/** A fault that was brought about, by the clock. */
export interface Struck {
  readonly kind: HarnessFault;
  readonly worker: number | null;
  readonly from: number;
  readonly to: number;
}

/**
 * The results directory is a link, which is pointed at nothing for a while: everything below it is gone, as when a disk
 * is unmounted. (Modes do not stop root, and mounting needs rights that a CI machine does not give.)
 */
export class Disk {
  readonly path: string;
  private readonly real: string;

  constructor(private readonly dir: string) {
    this.path = join(dir, 'results');
    this.real = join(dir, 'disk');
    mkdirSync(this.real);
    symlinkSync(this.real, this.path);
  }

  refuse(): void {
    this.point(join(this.dir, 'unmounted', 'disk'));
  }

  heal(): void {
    this.point(this.real);
  }

  private point(target: string): void {
    const draft = join(this.dir, 'results.new');
    rmSync(draft, { force: true });
    symlinkSync(target, draft);
    renameSync(draft, this.path);
  }
}

/** Carries a plan out against the processes; what a fault meets is not its business. */
export class Nemesis {
  readonly struck: Struck[] = [];
  private readonly underWay = new Set<Promise<void>>();
  private redisTurn: Promise<void> = Promise.resolve();
  private diskTurn: Promise<void> = Promise.resolve();
  private serverTurn: Promise<void> = Promise.resolve();

  constructor(
    private readonly plan: readonly PlannedFault[],
    private readonly parts: {
      readonly workers: readonly WorkerProcess[];
      readonly redis: RedisProcess;
      readonly server: TcpProxy;
      readonly sim: SimProcess;
      readonly disk: Disk;
    },
  ) {}

  /** Resolves when the plan is carried out and everything is whole again. */
  async run(): Promise<void> {
    const began = Date.now();
    for (const fault of this.plan) {
      await delay(Math.max(0, began + fault.at - Date.now()));
      const done: Promise<void> = this.strike(fault).finally(() => this.underWay.delete(done));
      this.underWay.add(done);
    }
    await Promise.all(this.underWay);
    await this.parts.sim.clearFaults();
  }

  private async strike(fault: PlannedFault): Promise<void> {
    if ('rule' in fault) {
      await this.parts.sim.addFault(fault.rule);
      return;
    }
    const { kind, ms } = fault;
    switch (kind) {
      case 'sigkill':
        return this.onWorker(fault.worker, kind, (worker) => worker.kill());
      case 'sigterm':
        return this.onWorker(fault.worker, kind, (worker) => worker.terminate());
      case 'sigstop':
        return this.onWorker(fault.worker, kind, (worker) => worker.freeze(ms));
      case 'redis_restart':
        this.redisTurn = this.redisTurn.then(() => this.restartRedis(ms));
        return this.redisTurn;
      case 'disk_refuses':
        this.diskTurn = this.diskTurn.then(() => this.refuseDisk(ms));
        return this.diskTurn;
      case 'redis_cut':
        return this.onProxy(kind, fault.worker, (proxy) => proxy.cut(1));
      case 'redis_stall':
        return this.onProxy(kind, fault.worker, (proxy) => proxy.stall(1), ms);
      // Workers have one address of the server, which is the account that runs belong to; so the fault is for some calls.
      case 'server_cut':
        return this.onProxy(kind, null, (proxy) => proxy.cut(0.6));
      case 'server_stall':
        this.serverTurn = this.serverTurn.then(() =>
          this.onProxy(kind, null, (proxy) => proxy.stall(0.6), ms),
        );
        return this.serverTurn;
      default:
        return kind satisfies never;
    }
  }

  /** On the worker it was planned for, or the next that is whole. */
  private async onWorker(
    planned: number,
    kind: HarnessFault,
    act: (worker: WorkerProcess) => Promise<void>,
  ): Promise<void> {
    const { workers } = this.parts;
    for (;;) {
      const order = workers.map((_, index) => workers[(planned + index) % workers.length] as WorkerProcess);
      const worker = order.find(({ busy, running }) => !busy && running);
      if (worker !== undefined) {
        worker.busy = true;
        const from = Date.now();
        await act(worker);
        worker.busy = false;
        this.note(kind, worker.index, from);
        return;
      }
      await delay(200);
    }
  }

  private async restartRedis(ms: number): Promise<void> {
    const from = Date.now();
    await this.parts.redis.down();
    await delay(ms);
    await this.parts.redis.up();
    this.note('redis_restart', null, from);
  }

  private async refuseDisk(ms: number): Promise<void> {
    const from = Date.now();
    this.parts.disk.refuse();
    await delay(ms);
    this.parts.disk.heal();
    this.note('disk_refuses', null, from);
  }

  private async onProxy(
    kind: HarnessFault,
    worker: number | null,
    act: (proxy: TcpProxy) => void,
    ms = 0,
  ): Promise<void> {
    const proxy = worker === null ? this.parts.server : (this.parts.workers[worker] as WorkerProcess).redis;
    const from = Date.now();
    act(proxy);
    if (ms > 0) {
      await delay(ms);
      proxy.resume();
    }
    this.note(kind, worker, from);
  }

  private note(kind: HarnessFault, worker: number | null, from: number): void {
    this.struck.push({ kind, worker, from, to: Date.now() });
  }
}
