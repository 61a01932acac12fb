import type { CallFailure } from '../src/mcp/port.js';
import type { WorkerContext } from './context.js';

const perList = 10;
/** 2,000 runs: eight starts a second from two minutes before the intent on. */
const listsAtMost = 200;
/** A walk that ended this lately answers whoever asks next. */
const freshMs = 5_000;
const inputsKept = 256;
const inputBytesKept = 65_536;

export interface UnclaimedRun {
  readonly runId: string;
  readonly storeId: string;
  /** Milliseconds since 1970, by the server's clock; null when it does not say. */
  readonly startedAtMs: number | null;
}

/** The server's list of runs, newest first, as far back as it was read. */
export interface Walk {
  readonly begunAt: number;
  readonly endedAt: number;
  /** When the oldest run of it was started; minus infinity when the list came to its end. */
  readonly reaches: number;
  /** Those that no scrape of ours has. */
  readonly runs: readonly UnclaimedRun[];
}

export type Walked = { readonly do: 'look'; readonly walk: Walk } | { readonly do: 'busy' } | Failed;
interface Failed {
  readonly do: 'failed';
  readonly failure: CallFailure;
}

/**
 * Walks through a server's list of runs for all whose start was never answered: after a connection that broke these are
 * dozens, and the list is thousands of runs long at ten a call. So one walks, and the others use what it found.
 */
export class RunWalks {
  private readonly latest = new Map<string, Walk>();
  private readonly walking = new Set<string>();
  private readonly inputs = new Map<string, unknown>();

  /** `busy`: somebody walks now; come back in a second. `to`: how far back, in ms since 1970. */
  async back(ctx: WorkerContext, server: string, to: number): Promise<Walked> {
    const known = this.latest.get(server);
    if (known !== undefined && ctx.now() - known.endedAt < freshMs && known.reaches <= to) {
      return { do: 'look', walk: known };
    }
    if (this.walking.has(server)) return { do: 'busy' };
    this.walking.add(server);
    try {
      const walked = await walk(ctx, server, to);
      if (walked.do === 'look') this.latest.set(server, walked.walk);
      return walked;
    } finally {
      this.walking.delete(server);
    }
  }

  /** This run was claimed since: another with the same input may still be there. */
  drop(server: string, runId: string): void {
    const known = this.latest.get(server);
    if (known === undefined) return;
    this.latest.set(server, { ...known, runs: known.runs.filter((run) => run.runId !== runId) });
  }

  /** The INPUT of a run, parsed; undefined when there is none. Read once for all who look. */
  async inputOf(
    ctx: WorkerContext,
    server: string,
    run: UnclaimedRun,
  ): Promise<{ readonly ok: true; readonly input: unknown } | { readonly ok: false }> {
    const key = `${server} ${run.runId}`;
    if (this.inputs.has(key)) return { ok: true, input: this.inputs.get(key) };
    const record = await ctx
      .server(server)
      .port.readRecord(run.storeId, 'INPUT', ctx.stopping, { runId: run.runId });
    if (!record.ok) return record.failure.notFound ? { ok: true, input: undefined } : { ok: false };
    if (record.value.kind !== 'json') return { ok: true, input: undefined };
    const input = parse(record.value.body);
    if (record.value.body.byteLength <= inputBytesKept) {
      this.inputs.set(key, input);
      for (const oldest of this.inputs.keys()) {
        if (this.inputs.size <= inputsKept) break;
        this.inputs.delete(oldest);
      }
    }
    return { ok: true, input };
  }
}

async function walk(ctx: WorkerContext, server: string, to: number): Promise<Walked> {
  const { port, account } = ctx.server(server);
  const begunAt = ctx.now();
  const runs = new Map<string, UnclaimedRun>();
  let reaches = Number.POSITIVE_INFINITY;
  for (let page = 0; page < listsAtMost && reaches > to; page += 1) {
    const listed = await port.listRuns({ offset: page * perList, limit: perList }, ctx.stopping);
    if (!listed.ok) return { do: 'failed', failure: listed.failure };
    const claims = listed.value.runs.map(({ runId }) => ctx.keys.claim(account, runId));
    const owners = claims.length === 0 ? [] : await ctx.redis.mget(claims);
    for (const [index, { runId, storeId, startedAtMs }] of listed.value.runs.entries()) {
      if (startedAtMs !== null) reaches = Math.min(reaches, startedAtMs);
      if (storeId !== null && owners[index] === null) runs.set(runId, { runId, storeId, startedAtMs });
    }
    if (listed.value.runs.length < perList) reaches = Number.NEGATIVE_INFINITY;
  }
  return { do: 'look', walk: { begunAt, endedAt: ctx.now(), reaches, runs: [...runs.values()] } };
}

export function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
