/**
 * Promise 7: a backlog survives whatever is wrong with its server for a while; nothing is rejected, it resumes by itself.
 * `BROKEN_SECONDS=600` breaks it for longer than the seconds that do for every run of the suite.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, it } from 'vitest';
import type { Conditions } from '../sim/index.js';
import { type Bench, yellowPages } from '../workers/harness.js';
import { backlog, broken, gauge, said, tally } from './broken.js';

interface Case {
  readonly scrapes: number;
  readonly runs?: number;
  /** Conditions while it lasts; absent: the server does not listen. */
  readonly fault?: Partial<Conditions>;
  readonly repair?: Partial<Conditions>;
  readonly gauge: 'trawl_server_held' | 'trawl_tool_held';
  readonly reason: string;
  /** Lines that say so: one, but for holds of a kind that come again by their nature. */
  readonly lines?: number;
}

const held = { gauge: 'trawl_server_held' } as const;
const cases: Record<string, Case> = {
  'a revoked token': {
    scrapes: 500,
    fault: { tokens: ['another'] },
    repair: { tokens: null },
    ...held,
    reason: 'auth',
  },
  'a revoked token that shows in each call': {
    scrapes: 30,
    fault: { tokens: ['another'], authMode: 'tool_error' },
    repair: { tokens: null },
    ...held,
    reason: 'auth',
  },
  'a revoked token that shows as an Actor that is not found': {
    scrapes: 30,
    fault: { tokens: ['another'], authMode: 'not_found' },
    repair: { tokens: null },
    gauge: 'trawl_tool_held',
    reason: 'tools_missing',
  },
  'a payment limit': {
    scrapes: 500,
    fault: { refusals: { '*': 'usage' } },
    repair: { refusals: {} },
    ...held,
    reason: 'payment',
  },
  'a payment limit in bare words': {
    scrapes: 30,
    fault: { refusals: { '*': 'payment' }, refuseBare: true },
    repair: { refusals: {} },
    ...held,
    reason: 'payment',
  },
  'a capacity limit': {
    scrapes: 500,
    runs: 60,
    fault: { maxRuns: 8 },
    repair: { maxRuns: null },
    ...held,
    reason: 'capacity',
  },
  'a server that is down': { scrapes: 500, ...held, reason: 'unreachable' },
  'a tools list that turns empty': {
    scrapes: 500,
    fault: { toolsListEmpty: true },
    repair: { toolsListEmpty: false },
    ...held,
    reason: 'tools_missing',
  },
};

const brokenMs = Number(process.env.BROKEN_SECONDS ?? 4) * 1_000;

describe.concurrent('a backlog', () => {
  it.for(Object.entries(cases))(
    'survives %s',
    { timeout: 110_000 + brokenMs },
    async ([_name, one], { expect }) => {
      const bench = await broken({ limits: { runs: one.runs ?? 60 } });
      try {
        const ids = await backlog(bench, one.scrapes, { runSecs: 0.5 });
        await expect.poll(() => bench.sim.stats().starts, { timeout: 20_000 }).toBeGreaterThanOrEqual(4);
        const startedBefore = bench.sim.stats().starts;
        const repair = await breakServer(bench, one);
        await Promise.all([
          expect
            .poll(async () => reasonsOf(await gauge(bench, one.gauge)), { timeout: 30_000, interval: 300 })
            .toContain(one.reason),
          delay(brokenMs),
        ]);
        await repair();
        expect(await tally(bench, ids, 100_000)).toEqual({ succeeded: one.scrapes });
        expect(bench.sim.stats().starts).toBe(one.scrapes);
        expect(startedBefore).toBeLessThan(one.scrapes);
        await expect
          .poll(async () => reasonsOf(await gauge(bench, one.gauge)), { timeout: 10_000, interval: 300 })
          .not.toContain(one.reason);
        const event = one.gauge === 'trawl_tool_held' ? 'tool.held' : 'server.held';
        // A cool-down says when it begins; a hold says so once and says once that it is over.
        if (one.reason !== 'capacity') {
          expect(said(bench, event)).toHaveLength(1);
          expect(said(bench, event)[0]).toMatchObject({
            level: 'error',
            reason: one.reason,
            server: 'apify',
          });
          expect(said(bench, event.replace('held', 'released'))).toHaveLength(1);
        }
      } finally {
        await bench.close();
      }
    },
  );
});

/** Breaks the server until what it returns is called. */
async function breakServer(bench: Bench, { fault, repair }: Case): Promise<() => Promise<void>> {
  if (fault === undefined) return bench.sim.shut();
  bench.sim.set(fault);
  bench.sim.dropSessions();
  return async () => bench.sim.set(repair ?? {});
}

function reasonsOf(values: Record<string, number>): string[] {
  return Object.entries(values)
    .filter(([labels, value]) => value === 1 && (labels.includes(yellowPages) || !labels.includes('tool=')))
    .map(([labels]) => /reason="([a-z_]+)"/.exec(labels)?.[1] ?? '');
}
