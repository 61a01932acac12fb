import { collectDefaultMetrics, Registry } from 'prom-client';
import { type HoldReason, type Operation, operations } from '../mcp/port.js';
import { type Outcome, outcomes } from '../scrape/types.js';
import { defineMetrics } from './definitions.js';
import { type CallResultLabel, holdReasons, initialResults, Labels, rpcCodeLabel, word } from './labels.js';

export interface MetricsOptions {
  readonly version: string;
  /** Configured servers and their allowed tools: the only ones with series of their own, all others are `other`. */
  readonly servers: Readonly<Record<string, { readonly tools: readonly string[] }>>;
  /** Adds prom-client's metrics of the process (CPU, memory, event loop), `process_*` and `nodejs_*`. */
  readonly process?: boolean;
}

/** Gauges of prom-client whose names say counter: `promtool check metrics` takes offence, and nobody asks for them. */
const misnamed = ['handles', 'requests', 'resources'].map((what) => `nodejs_active_${what}_total`);

export const invalidSources = ['bullmq', 'stream', 'list', 'file', 'api'] as const;
export type InvalidSource = (typeof invalidSources)[number];
export type Metrics = ReturnType<typeof createMetrics>;

/**
 * The metrics of design A8 on a registry of their own. Durations are seconds, sizes bytes, money US dollars. Numbers that
 * are not finite or, for counters, negative are dropped: one bad value from outside must not break every later scrape.
 */
export function createMetrics({ version, servers, process = false }: MetricsOptions) {
  const registry = new Registry();
  const m = defineMetrics(registry);
  const labels = new Labels(servers);
  const heldBefore = new Set<string>();
  const beforeCollect = new Set<() => void | Promise<void>>();
  if (process) {
    collectDefaultMetrics({ register: registry });
    for (const name of misnamed) registry.removeSingleMetric(name);
  }
  m.buildInfo.set({ version: version.slice(0, 64) }, 1);
  initialise();

  function initialise(): void {
    m.redisEvictedKeys.inc(0);
    // A gauge without labels begins as 0, which only the elected process may say.
    for (const redis of [m.redisMemoryUsed, m.redisMemoryMax]) redis.remove();
    for (const source of invalidSources) m.jobsInvalid.inc({ source }, 0);
    for (const { server, tools } of labels.pairs()) {
      m.scrapesDeduplicated.inc({ server }, 0);
      for (const operation of operations) {
        for (const result of initialResults) m.mcpRequests.inc({ server, operation, result }, 0);
      }
      for (const tool of tools) {
        m.scrapesSubmitted.inc({ server, tool }, 0);
        m.usageUsd.inc({ server, tool }, 0);
        for (const outcome of outcomes) m.scrapesSettled.inc({ server, tool, outcome }, 0);
      }
    }
  }

  const pair = (server: string, tool: string) => ({
    server: labels.server(server),
    tool: labels.tool(server, tool),
  });
  const amount = (value: number): number => (Number.isFinite(value) && value > 0 ? value : 0);
  const seconds = (value: number): number | null => (Number.isFinite(value) ? Math.max(0, value) : null);

  return {
    registry,
    contentType: registry.contentType,
    /** The exposition text, after what `onCollect` registered has run. */
    async text(): Promise<string> {
      await Promise.all([...beforeCollect].map((refresh) => refresh()));
      return registry.metrics();
    },
    /** Runs before each exposition, for gauges that are cheap to read late. Returns how to take it off again. */
    onCollect(refresh: () => void | Promise<void>): () => void {
      beforeCollect.add(refresh);
      return () => beforeCollect.delete(refresh);
    },

    scrapeSubmitted: (server: string, tool: string) => m.scrapesSubmitted.inc(pair(server, tool)),
    scrapeDeduplicated: (server: string) => m.scrapesDeduplicated.inc({ server: labels.server(server) }),
    jobInvalid: (source: InvalidSource) => m.jobsInvalid.inc({ source: word(source) }),
    scrapeSettled: (server: string, tool: string, outcome: Outcome) =>
      m.scrapesSettled.inc({
        ...pair(server, tool),
        outcome: outcomes.includes(outcome) ? outcome : 'other',
      }),

    /** One call that ended: counted, timed and, for a protocol error, counted by its JSON-RPC code. */
    mcpRequest(
      server: string,
      operation: Operation,
      result: CallResultLabel,
      durationSeconds: number,
      rpcCode: number | null = null,
    ): void {
      const call = { server: labels.server(server), operation };
      m.mcpRequests.inc({ ...call, result });
      const took = seconds(durationSeconds);
      if (took !== null) m.mcpRequestDuration.observe(call, took);
      if (result === 'protocol_error') m.mcpProtocolErrors.inc({ ...call, code: rpcCodeLabel(rpcCode) });
    },
    runDuration(server: string, tool: string, value: number): void {
      const took = seconds(value);
      if (took !== null) m.runDuration.observe(pair(server, tool), took);
    },
    scrapeDuration(server: string, tool: string, value: number): void {
      const took = seconds(value);
      if (took !== null) m.scrapeDuration.observe(pair(server, tool), took);
    },
    pollLateness(server: string, value: number): void {
      const late = seconds(value);
      if (late !== null) m.pollLateness.observe({ server: labels.server(server) }, late);
    },

    /** A page that this process published; one that existed already was counted by whoever wrote it. */
    pageWritten(
      server: string,
      sink: string,
      page: { readonly items: number; readonly bytes: number },
    ): void {
      const place = { server: labels.server(server), sink: word(sink) };
      m.pagesWritten.inc(place);
      m.itemsWritten.inc(place, amount(page.items));
      m.resultBytes.inc(place, amount(page.bytes));
    },
    sinkError: (sink: string) => m.sinkErrors.inc({ sink: word(sink) }),
    sinkHeld: (sink: string, held: boolean) => m.sinkHeld.set({ sink: word(sink) }, held ? 1 : 0),

    queueJobs: (queue: string, state: string, count: number) =>
      m.queueJobs.set({ queue: labels.queue(queue), state: labels.state(state) }, amount(count)),
    queueOldestAge: (queue: string, ageSeconds: number) =>
      m.queueOldestAge.set({ queue: labels.queue(queue) }, amount(ageSeconds)),
    runsInFlight: (server: string, count: number) =>
      m.runsInFlight.set({ server: labels.server(server) }, amount(count)),
    runSlots: (server: string, count: number) =>
      m.runSlots.set({ server: labels.server(server) }, amount(count)),
    serverUp: (server: string, up: boolean) => m.serverUp.set({ server: labels.server(server) }, up ? 1 : 0),
    /** The reasons in force now; every other reason reads 0. */
    serverHeld(server: string, reasons: ReadonlySet<HoldReason>): void {
      for (const reason of holdReasons) {
        m.serverHeld.set({ server: labels.server(server), reason }, reasons.has(reason) ? 1 : 0);
      }
    },
    /** The reasons in force now. A tool that was never held has no series: eight a tool would be most of them. */
    toolHeld(server: string, tool: string, reasons: ReadonlySet<HoldReason>): void {
      const place = pair(server, tool);
      for (const reason of holdReasons) {
        if (reasons.has(reason) || heldBefore.has(`${place.server} ${place.tool} ${reason}`)) {
          heldBefore.add(`${place.server} ${place.tool} ${reason}`);
          m.toolHeld.set({ ...place, reason }, reasons.has(reason) ? 1 : 0);
        }
      }
    },
    /** Fleet-wide gauges come from one elected process: whoever stops being it forgets them, or they would stand still. */
    forgetFleet(): void {
      for (const fleet of [
        m.queueJobs,
        m.queueOldestAge,
        m.runsInFlight,
        m.runSlots,
        m.serverUp,
        m.serverHeld,
        m.toolHeld,
      ]) {
        fleet.reset();
      }
      for (const redis of [m.redisMemoryUsed, m.redisMemoryMax]) redis.remove();
      heldBefore.clear();
    },

    usage: (server: string, tool: string, usd: number) => m.usageUsd.inc(pair(server, tool), amount(usd)),
    ambiguousStart: (server: string, resolution: string) =>
      m.ambiguousStarts.inc({ server: labels.server(server), resolution: word(resolution) }),
    orphanRun: (server: string, action: string) =>
      m.orphanRuns.inc({ server: labels.server(server), action: word(action) }),
    stalledJob: (queue: string) => m.stalledJobs.inc({ queue: labels.queue(queue) }),
    retry: (server: string, reason: string) =>
      m.retries.inc({ server: labels.server(server), reason: word(reason) }),
    /** `atMs` since 1970. */
    workerFetched: (queue: string, atMs: number) =>
      m.workerLastFetch.set({ queue: labels.queue(queue) }, amount(atMs) / 1000),
    /** From INFO; `evictedKeys` counts from the start of Redis, so it is set rather than added. */
    redis(info: {
      readonly usedBytes: number;
      readonly maxBytes: number;
      readonly evictedKeys: number;
    }): void {
      m.redisMemoryUsed.set(amount(info.usedBytes));
      m.redisMemoryMax.set(amount(info.maxBytes));
      m.redisEvictedKeys.reset();
      m.redisEvictedKeys.inc(amount(info.evictedKeys));
    },
  };
}
