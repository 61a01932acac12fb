import type { Timing } from '../../workers/timing.js';
import { Bench, type BenchOptions, yellowPages } from '../workers/harness.js';

/** Spans of tens of seconds and minutes, as seconds. */
export const quick: Partial<Timing> = {
  sweepEveryMs: 300,
  probeEveryMs: 1_000,
  reapEveryMs: 1_000,
  firstTrialMs: 1_000,
  trialEveryMs: 1_500,
  refusalPatienceMs: 2_000,
  certainAfterMs: 4_000,
};

export const input = (search: string, sim: Record<string, unknown> = {}) => ({
  search,
  location: 'Austin, TX',
  sim: { runSecs: 0.5, readySecs: 0, lagSecs: 0, items: 1, ...sim },
});

export const mapsInput = (search: string, sim: Record<string, unknown> = {}) => ({
  searchStringsArray: [search],
  sim: { runSecs: 0.5, readySecs: 0, lagSecs: 0, items: 1, ...sim },
});

/** A bench with one daemon on quick spans. */
export async function broken(options: BenchOptions = {}, timing: Partial<Timing> = {}): Promise<Bench> {
  const bench = await Bench.open({ ...options, config: { start: { timeout: '5s' }, ...options.config } });
  await bench.daemon({ timing: { ...quick, ...timing } });
  return bench;
}

/** Adds `count` scrapes at once and gives their ids. */
export async function backlog(
  bench: Bench,
  count: number,
  sim: Record<string, unknown> = {},
  job: Record<string, unknown> = {},
): Promise<string[]> {
  const prefix = typeof job.prefix === 'string' ? job.prefix : 's';
  const { prefix: _, ...rest } = job;
  const ids = Array.from({ length: count }, (_unused, index) => `${prefix}-${index}`);
  await bench.queue.addBulk(
    ids.map((id) => ({
      name: 'scrape',
      data: { tool: yellowPages, input: input(id, sim), ...rest },
      opts: { jobId: `default.${id}` },
    })),
  );
  return ids;
}

/** How many scrapes ended how. */
export async function tally(
  bench: Bench,
  ids: readonly string[],
  ms = 55_000,
): Promise<Record<string, number>> {
  const outcomes = await Promise.all(ids.map((id) => bench.outcome(id, ms)));
  const counts: Record<string, number> = {};
  for (const { outcome } of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/** What the daemons logged of an event. */
export function said(bench: Pick<Bench, 'logged'>, event: string): Record<string, unknown>[] {
  return bench.logged.filter((line) => line.event === event);
}

/** Labelled values of a gauge as the elected process serves it: `{reason="auth"…}` → 1. */
export async function gauge(bench: Bench, name: string): Promise<Record<string, number>> {
  const text = await bench.daemons[0]?.ctx.metrics.text();
  const values: Record<string, number> = {};
  for (const line of (text ?? '').split('\n')) {
    const match = /^([a-z_]+)(\{[^}]*\})? (\S+)$/.exec(line);
    if (match?.[1] === name) values[match[2] ?? ''] = Number(match[3]);
  }
  return values;
}
