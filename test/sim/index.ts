import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { handleAdmin } from './admin.js';
import type { Conditions } from './conditions.js';
import { Endpoint } from './endpoint.js';
import type { Faults } from './faults.js';
import type { Ledger, LedgerMode } from './ledger.js';
import { isFinal, statusOf, viewDataset } from './runs.js';
import { Sessions } from './sessions.js';
import { type EndStatus, parseSteering, type Steering } from './steering.js';
import { World } from './world.js';

export { catalogue, findActor, toolNameOf } from './actors/catalogue.js';
export type { Conditions } from './conditions.js';
export type { FaultRule } from './faults.js';
export type { LedgerEntry, LedgerFilter } from './ledger.js';
export { type RefusalName, refusalNames } from './refusals.js';
export { type EndStatus, type FaultKind, faultKinds, type SimOperation, type Steering } from './steering.js';

export interface SimOptions {
  /** 0 (default): a free one. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 1. The same seed gives the same runs in the order they are started. */
  readonly seed?: number;
  /** Divides drawn durations, READY times and lags; default 1. What a job steers itself is wall clock time. */
  readonly speed?: number;
  /** Number of the first run; run ids go on from it. */
  readonly firstRun?: number;
  readonly ledger?: LedgerMode;
  /** Entries kept; default 500,000. `ledger.dropped` tells what is missing. */
  readonly ledgerLimit?: number;
  /** Final runs are forgotten from the oldest above this; default 200,000. */
  readonly keepRuns?: number;
  /** MCP sessions kept; default 10,000. */
  readonly maxSessions?: number;
  readonly conditions?: Partial<Conditions>;
  /** Wishes that every run starts from; a job's own `sim` key wins. */
  readonly steering?: Steering;
}

export interface SimStats {
  readonly seed: number;
  readonly speed: number;
  readonly upSecs: number;
  readonly sessions: number;
  readonly starts: number;
  readonly doubleStarts: number;
  readonly refused: number;
  readonly aborts: number;
  readonly cancelled: number;
  readonly polls: number;
  readonly reads: number;
  readonly runsKept: number;
  readonly inFlight: number;
  readonly maxInFlight: number;
  readonly memoryMb: number;
  readonly maxMemoryMb: number;
  readonly runsByStatus: Readonly<Record<string, number>>;
  readonly requests: Readonly<Record<string, number>>;
  /** Answers by HTTP status; `0`: the connection ended without one. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly faultsFired: Readonly<Record<string, number>>;
  readonly ledgerDropped: number;
  /** Of the whole process, in microseconds. */
  readonly cpu: { readonly user: number; readonly system: number };
  readonly rssBytes: number;
}

export interface SimRun {
  readonly runId: string;
  readonly actor: string;
  readonly status: string;
  readonly final: boolean;
  readonly items: number;
  /** Items that a read of the default dataset can reach now. */
  readonly readable: number;
  readonly startedAt: number;
  readonly endAt: number;
}

/** A running simulator. */
export interface Sim {
  /** Without a query: add `?tools=…`. */
  readonly url: string;
  readonly port: number;
  readonly ledger: Ledger;
  readonly faults: Faults;
  readonly conditions: Conditions;
  /** Changes conditions. @throws ZodError on an unknown key or a bad value. */
  set(patch: Partial<Conditions>): void;
  stats(): SimStats;
  runs(): SimRun[];
  /** Ends a run now; false when it is not under way. */
  finish(runId: string, status?: EndStatus, items?: number | null): boolean;
  /** Moves the simulator's clock forward. Its timestamps then lie in the future of everybody else. */
  advance(ms: number): void;
  now(): number;
  /** All MCP sessions are forgotten; returns how many. */
  dropSessions(): number;
  /** Refuses connections for that long, cutting those there are; resolves when it listens again. */
  down(ms: number): Promise<void>;
  /** The same until the function it gives is called. */
  shut(): Promise<() => Promise<void>>;
  reset(options?: { readonly sessions?: boolean }): void;
  close(): Promise<void>;
}

/** Starts a simulated Apify MCP server. README.md in this folder documents what it does and how it is steered. */
export async function startSim(options: SimOptions = {}): Promise<Sim> {
  const world = new World({
    seed: options.seed ?? 1,
    speed: options.speed ?? 1,
    firstRun: options.firstRun ?? 1,
    ledger: options.ledger ?? 'all',
    ledgerLimit: options.ledgerLimit ?? 500_000,
    keepRuns: options.keepRuns ?? 200_000,
    conditions: options.conditions ?? {},
    steering: parseSteering(options.steering),
  });
  const sessions = new Sessions(options.maxSessions ?? 10_000);
  const endpoint = new Endpoint(world, sessions);
  const host = options.host ?? '127.0.0.1';

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://simulator');
    const handled = url.pathname.startsWith('/sim/')
      ? handleAdmin(sim, request, response, url)
      : endpoint.handle(request, response, url);
    handled.catch((error: unknown) => {
      // A fault of the simulator's own: loud, so that no test takes it for a simulated one.
      process.stderr.write(`simulator: ${error instanceof Error ? error.stack : String(error)}\n`);
      response.destroy();
    });
  });
  server.keepAliveTimeout = 75_000;
  server.requestTimeout = 0;
  await listen(server, options.port ?? 0, host);
  const port = (server.address() as AddressInfo).port;
  let backUp: ReturnType<typeof setTimeout> | undefined;
  let isClosed = false;

  const endCalls = () => {
    for (const session of sessions.all()) for (const call of [...session.calls.values()]) call.end();
  };

  const sim: Sim = {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}/`,
    port,
    ledger: world.ledger,
    faults: world.faults,
    get conditions() {
      return world.conditions;
    },
    set: (patch) => world.set(patch),
    stats: () => statsOf(world, sessions, endpoint),
    runs: () =>
      world.runs.all().map((run) => ({
        runId: run.id,
        actor: run.actor.name,
        status: statusOf(run, world.now()),
        final: isFinal(run, world.now()),
        items: run.items,
        readable: viewDataset(run, 'default', world.now())?.readable ?? 0,
        startedAt: run.startedAt,
        endAt: run.endAt,
      })),
    finish: (runId, status, items) => world.finish(runId, status, items),
    advance: (ms) => world.advance(ms),
    now: () => world.now(),
    dropSessions: () => sessions.dropAll(),
    async down(ms) {
      const open = await sim.shut();
      await new Promise<void>((resolve) => {
        backUp = setTimeout(resolve, ms);
      });
      await open();
    },
    async shut() {
      await stopListening(server);
      return async () => {
        if (!isClosed) await listen(server, port, host);
      };
    },
    reset(what = {}) {
      world.reset();
      endpoint.requests.clear();
      endpoint.statuses.clear();
      if (what.sessions) sessions.dropAll();
    },
    async close() {
      isClosed = true;
      clearTimeout(backUp);
      endCalls();
      if (server.listening) await stopListening(server);
    },
  };
  return sim;
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog: 4096 }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function stopListening(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function statsOf(world: World, sessions: Sessions, endpoint: Endpoint): SimStats {
  const now = world.now();
  const inFlight = world.runs.inFlight(now);
  const runsByStatus: Record<string, number> = {};
  for (const run of world.runs.all()) {
    const status = statusOf(run, now);
    runsByStatus[status] = (runsByStatus[status] ?? 0) + 1;
  }
  const { ledger } = world;
  return {
    seed: world.options.seed,
    speed: world.options.speed,
    upSecs: world.upMs / 1000,
    sessions: sessions.size,
    starts: ledger.count('start'),
    doubleStarts: world.faults.fired.get('double_run') ?? 0,
    refused: ledger.count('refused'),
    aborts: ledger.count('abort'),
    cancelled: ledger.count('cancelled'),
    polls: ledger.count('poll'),
    reads: ledger.count('read'),
    runsKept: world.runs.size,
    inFlight: inFlight.runs,
    maxInFlight: world.runs.maxInFlight,
    memoryMb: inFlight.memoryMb,
    maxMemoryMb: world.runs.maxMemoryMb,
    runsByStatus,
    requests: Object.fromEntries(endpoint.requests),
    statuses: Object.fromEntries(endpoint.statuses),
    faultsFired: Object.fromEntries(world.faults.fired),
    ledgerDropped: ledger.dropped,
    cpu: process.cpuUsage(),
    rssBytes: process.memoryUsage.rss(),
  };
}
