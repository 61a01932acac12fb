/** What the simulator did, in order: the other half of every proof about the product. */
export interface LedgerEntry {
  readonly n: number;
  /** Milliseconds since the epoch, on the simulator's clock. */
  readonly at: number;
  readonly kind: LedgerKind;
  readonly session: string | null;
  /** JSON-RPC id of the call. */
  readonly call: string | number | null;
  readonly runId?: string;
  readonly actor?: string;
  /** The run's input as JSON, exactly as it came. */
  readonly input?: string;
  readonly options?: object;
  readonly via?: 'call-actor' | 'direct';
  /** This start is the second run of one call. */
  readonly double?: boolean;
  readonly dataset?: string;
  readonly offset?: number;
  readonly limit?: number;
  readonly count?: number;
  readonly status?: string;
  readonly reason?: string;
  readonly key?: string;
}

/** `cancelled`: a client cancelled its start and the run was aborted. */
export const ledgerKinds = [
  'start',
  'refused',
  'abort',
  'cancelled',
  'finished',
  'poll',
  'read',
  'record',
  'list',
  'connect',
  'list_tools',
  'fault',
] as const;
export type LedgerKind = (typeof ledgerKinds)[number];

export interface LedgerFilter {
  readonly kind?: readonly string[];
  readonly runId?: string;
  readonly dataset?: string;
  readonly actor?: string;
  /** Entries with `n` above this. */
  readonly since?: number;
  readonly limit?: number;
}

export type LedgerMode = 'all' | 'starts' | 'off';
const startKinds: ReadonlySet<LedgerKind> = new Set([
  'start',
  'refused',
  'abort',
  'cancelled',
  'finished',
  'fault',
]);

export class Ledger {
  readonly #mode: LedgerMode;
  readonly #limit: number;
  #entries: LedgerEntry[] = [];
  #n = 0;
  /** Entries of each kind since the last reset, forgotten ones included. */
  readonly counts = new Map<LedgerKind, number>();
  /** Entries dropped because the ledger was full: a checker must find 0 here. */
  dropped = 0;

  constructor(mode: LedgerMode, limit: number) {
    this.#mode = mode;
    this.#limit = limit;
  }

  write(entry: Omit<LedgerEntry, 'n'>): void {
    this.#n += 1;
    this.counts.set(entry.kind, (this.counts.get(entry.kind) ?? 0) + 1);
    if (this.#mode === 'off' || (this.#mode === 'starts' && !startKinds.has(entry.kind))) return;
    this.#entries.push({ n: this.#n, ...entry });
    if (this.#entries.length >= this.#limit * 1.25) {
      const surplus = this.#entries.length - this.#limit;
      this.#entries = this.#entries.slice(surplus);
      this.dropped += surplus;
    }
  }

  count(kind: LedgerKind): number {
    return this.counts.get(kind) ?? 0;
  }

  entries(filter: LedgerFilter = {}): LedgerEntry[] {
    const { kind, runId, dataset, actor, since = 0, limit = Number.POSITIVE_INFINITY } = filter;
    const kinds = kind === undefined || kind.length === 0 ? null : new Set(kind);
    const found: LedgerEntry[] = [];
    for (const entry of this.#entries) {
      if (found.length >= limit) break;
      if (entry.n <= since || (kinds !== null && !kinds.has(entry.kind))) continue;
      if (runId !== undefined && entry.runId !== runId) continue;
      if (dataset !== undefined && entry.dataset !== dataset) continue;
      if (actor !== undefined && entry.actor !== actor) continue;
      found.push(entry);
    }
    return found;
  }

  /** The starts, for the commonest question: which runs did that input get? */
  starts(actor?: string): LedgerEntry[] {
    return this.entries(actor === undefined ? { kind: ['start'] } : { kind: ['start'], actor });
  }

  clear(): void {
    this.#entries = [];
    this.counts.clear();
    this.dropped = 0;
  }
}
