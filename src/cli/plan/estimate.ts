import type { Config } from '../../config.js';
import type { Scrape } from '../../scrape/types.js';
import type { ToolHistory } from './history.js';

/** Where a cost comes from: `cap` is the job's own maxTotalChargeUsd, when nothing better is known. */
export type CostBasis = 'price' | 'past runs' | 'cap' | 'unknown';

/** A run of a tool without history is taken to last this long. */
export const assumedRunMs = 120_000;

export interface ToolEstimate {
  readonly server: string;
  readonly tool: string;
  scrapes: number;
  usd: number;
  /** Scrapes whose cost nothing is known about; they are not in `usd`. */
  unknownCost: number;
  /** Scrapes of which only the price of the start is known; what their items cost comes on top. */
  openCost: number;
  readonly bases: Set<CostBasis>;
  calls: number;
  /** Time that runs occupy slots, in ms. */
  slotMs: number;
  /** Past runs that the figures come from; 0: durations are assumed. */
  readonly pastRuns: number;
}

export interface ServerEstimate {
  readonly server: string;
  readonly hours: number;
  /** What a higher limit of would make it faster. */
  readonly limitedBy: 'run slots' | 'request rate';
  /** Hours if only the other limit applied. */
  readonly otherHours: number;
}

const hourMs = 3_600_000;

/** Adds up what scrapes will cost and how long they will take, one at a time, without keeping them. */
export class Estimate {
  private readonly byTool = new Map<string, ToolEstimate>();

  constructor(
    private readonly config: Config,
    private readonly history: ReadonlyMap<string, ToolHistory>,
  ) {}

  add(scrape: Scrape): void {
    const key = `${scrape.server}/${scrape.tool}`;
    const past = this.history.get(key);
    const entry = this.byTool.get(key) ?? newEntry(scrape, past);
    this.byTool.set(key, entry);
    entry.scrapes += 1;
    this.addCost(entry, scrape, past);
    const interval = this.config.poll.intervalMs;
    const runMs = Math.min(past === undefined ? assumedRunMs : past.seconds * 1000, scrape.deadlineMs);
    const polls = Math.max(1, Math.ceil(runMs / interval));
    // The start, the polls, and the reads of pages; the last read proves the end of the dataset.
    entry.calls += 1 + polls + Math.max(1, Math.ceil(past?.pages ?? 1));
    // A slot is free again when a poll has seen the end.
    entry.slotMs += polls * interval;
  }

  private addCost(entry: ToolEstimate, scrape: Scrape, past: ToolHistory | undefined): void {
    const cap = scrape.options.maxTotalChargeUsd ?? Number.POSITIVE_INFINITY;
    const price = this.config.servers[scrape.server]?.tools[scrape.tool]?.price ?? null;
    const expected = past?.items ?? scrape.options.maxItems;
    const items =
      expected === undefined ? undefined : Math.min(expected, scrape.options.maxItems ?? expected);
    let usd: number;
    let basis: CostBasis;
    if (price !== null && (items !== undefined || price.item === 0)) {
      usd = price.start + price.item * (items ?? 0);
      basis = 'price';
    } else if (past !== undefined && past.usageUsd !== null) {
      usd = past.usageUsd;
      basis = 'past runs';
    } else if (Number.isFinite(cap)) {
      usd = cap;
      basis = 'cap';
    } else if (price !== null) {
      usd = price.start;
      basis = 'price';
      entry.openCost += 1;
    } else {
      usd = 0;
      basis = 'unknown';
      entry.unknownCost += 1;
    }
    entry.usd += Math.min(usd, cap);
    entry.bases.add(basis);
  }

  get tools(): ToolEstimate[] {
    return [...this.byTool.values()].sort((a, b) => b.scrapes - a.scrapes);
  }

  get usd(): number {
    return this.tools.reduce((sum, tool) => sum + tool.usd, 0);
  }

  get unknownCost(): number {
    return this.tools.reduce((sum, tool) => sum + tool.unknownCost, 0);
  }

  get openCost(): number {
    return this.tools.reduce((sum, tool) => sum + tool.openCost, 0);
  }

  /** Whether any of the durations is a guess. */
  get assumesDurations(): boolean {
    return this.tools.some((tool) => tool.pastRuns === 0);
  }

  /** Servers work side by side: the whole takes as long as the slowest, which comes first. */
  get servers(): ServerEstimate[] {
    const names = new Set(this.tools.map((tool) => tool.server));
    return [...names].map((name) => this.serverEstimate(name)).sort((a, b) => b.hours - a.hours);
  }

  private serverEstimate(name: string): ServerEstimate {
    const own = this.tools.filter((tool) => tool.server === name);
    const { runs = 1, requestsPerSecond = 1 } = this.config.servers[name]?.limits ?? {};
    const slotMs = own.reduce((sum, tool) => sum + tool.slotMs, 0);
    // With more slots than scrapes it still takes as long as one of them.
    const longest = Math.max(0, ...own.map((tool) => (tool.scrapes === 0 ? 0 : tool.slotMs / tool.scrapes)));
    const bySlots = Math.max(slotMs / runs, longest) / hourMs;
    const byRate = own.reduce((sum, tool) => sum + tool.calls, 0) / requestsPerSecond / 3600;
    return bySlots >= byRate
      ? { server: name, hours: bySlots, limitedBy: 'run slots', otherHours: byRate }
      : { server: name, hours: byRate, limitedBy: 'request rate', otherHours: bySlots };
  }
}

function newEntry({ server, tool }: Scrape, past: ToolHistory | undefined): ToolEstimate {
  const pastRuns = past?.runs ?? 0;
  const sums = { scrapes: 0, usd: 0, unknownCost: 0, openCost: 0, calls: 0, slotMs: 0 };
  return { server, tool, ...sums, bases: new Set(), pastRuns };
}
