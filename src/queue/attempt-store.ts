import { TrawlError } from '../errors.js';
import type { Attempt, Decision, Phase, RunSpec, Slice } from '../run/attempt.js';
import { phaseRank, phases } from '../run/attempt.js';
import { type Keys, publicQueue } from './names.js';
import { eventBound } from './publish.js';
import type { ScriptedRedis } from './scripts.js';

type Stored = Omit<Attempt, 'scrape' | 'jobId' | 'n' | 'phase' | 'submittedAt'>;
/** What a step changes. Only fields named here are written; null deletes. */
export type AttemptPatch = { readonly [Name in keyof Stored]?: Stored[Name] | null };

/** The lock of the job that works on an attempt; every write proves that it still holds it. */
export interface Lock {
  readonly key: string;
  readonly token: string;
}

/** An entry of the event stream that is written with a change of state, in one step. */
export interface StoredEvent {
  readonly type: 'page.written';
  readonly id: string;
  readonly batch: string;
  readonly data: object;
}

/** How a guarded write went. `stale`: another worker has moved on, and this one has nothing left to do. */
export type Written = 'done' | 'stale';

type Codec = { field: string; kind: 'int' | 'float' | 'text' | 'json' | 'slice' };

/** Short field names keep a hash in Redis' compact encoding: a parked scrape has to stay under 3 KB. */
const codecs: Record<keyof Required<AttemptPatch>, Codec> = {
  digest: { field: 'dg', kind: 'text' },
  spec: { field: 'sp', kind: 'json' },
  cancelledAt: { field: 'cx', kind: 'int' },
  intentAt: { field: 'it', kind: 'int' },
  ambiguousSince: { field: 'as', kind: 'int' },
  asked: { field: 'ak', kind: 'json' },
  startedAt: { field: 'sa', kind: 'int' },
  deadlineAt: { field: 'dl', kind: 'int' },
  runId: { field: 'rid', kind: 'text' },
  datasetId: { field: 'ds', kind: 'text' },
  storeId: { field: 'kv', kind: 'text' },
  status: { field: 'st', kind: 'text' },
  statusMessage: { field: 'sm', kind: 'text' },
  serverStartedAt: { field: 'ss', kind: 'int' },
  repliedAt: { field: 'ra', kind: 'int' },
  endedAt: { field: 'en', kind: 'int' },
  polls: { field: 'po', kind: 'int' },
  pollFailures: { field: 'pf', kind: 'int' },
  itemCount: { field: 'ic', kind: 'int' },
  usageUsd: { field: 'us', kind: 'float' },
  usageBefore: { field: 'ub', kind: 'float' },
  elsewhere: { field: 'el', kind: 'json' },
  abort: { field: 'ab', kind: 'text' },
  abortTries: { field: 'atr', kind: 'int' },
  slice: { field: 'sl', kind: 'slice' },
  pages: { field: 'pg', kind: 'int' },
  items: { field: 'itm', kind: 'int' },
  bytes: { field: 'by', kind: 'int' },
  reads: { field: 'rd', kind: 'int' },
  recordsDone: { field: 'rc', kind: 'int' },
  warnings: { field: 'wn', kind: 'json' },
  unknownSince: { field: 'uk', kind: 'int' },
  unknownTimes: { field: 'ut', kind: 'int' },
  faults: { field: 'ft', kind: 'int' },
  stallBase: { field: 'sb', kind: 'text' },
  decision: { field: 'dc', kind: 'json' },
};

function encode(value: unknown, kind: Codec['kind']): string {
  if (value === null || value === undefined) return '';
  switch (kind) {
    case 'int':
    case 'float':
    case 'text':
      return String(value);
    case 'json':
      return JSON.stringify(value);
    case 'slice': {
      const slice = value as Slice;
      return `${slice.index},${slice.offset},${slice.limit}`;
    }
    default:
      return kind satisfies never;
  }
}

/** Field, value, field, value … as the scripts take them. */
function encodePatch(patch: AttemptPatch): string[] {
  return Object.entries(patch).flatMap(([name, value]) => {
    const codec = codecs[name as keyof AttemptPatch];
    return [codec.field, encode(value, codec.kind)];
  });
}

/** A hash as Redis gives it → the attempt; null when there is none (or only a cancel mark). */
function decodeAttempt(scrape: string, hash: Record<string, string>): Attempt | null {
  if (hash.ph === undefined || hash.n === undefined) return null;
  const text = (name: keyof AttemptPatch) => hash[codecs[name].field] ?? null;
  const number = (name: keyof AttemptPatch) => {
    const value = text(name);
    return value === null ? null : Number(value);
  };
  const json = <T>(name: keyof AttemptPatch, absent: T): T => {
    const value = text(name);
    return value === null ? absent : (JSON.parse(value) as T);
  };
  return {
    scrape,
    jobId: hash.job ?? scrape,
    n: Number(hash.n),
    phase: phases[Number(hash.ph)] ?? 'done',
    submittedAt: Number(hash.at ?? 0),
    digest: hash.dg ?? '',
    spec: json<RunSpec | null>('spec', null),
    cancelledAt: number('cancelledAt'),
    intentAt: number('intentAt'),
    ambiguousSince: number('ambiguousSince'),
    asked: json<Attempt['asked']>('asked', null),
    startedAt: number('startedAt'),
    deadlineAt: number('deadlineAt'),
    runId: text('runId'),
    datasetId: text('datasetId'),
    storeId: text('storeId'),
    status: text('status'),
    statusMessage: text('statusMessage'),
    serverStartedAt: number('serverStartedAt'),
    repliedAt: number('repliedAt'),
    endedAt: number('endedAt'),
    polls: number('polls') ?? 0,
    pollFailures: number('pollFailures') ?? 0,
    itemCount: number('itemCount'),
    usageUsd: number('usageUsd'),
    usageBefore: number('usageBefore'),
    elsewhere: json<string[]>('elsewhere', []),
    abort: text('abort') as Attempt['abort'],
    abortTries: number('abortTries') ?? 0,
    slice: decodeSlice(text('slice')),
    pages: number('pages') ?? 0,
    items: number('items') ?? 0,
    bytes: number('bytes') ?? 0,
    reads: number('reads') ?? 0,
    recordsDone: number('recordsDone') ?? 0,
    warnings: json<string[]>('warnings', []),
    unknownSince: number('unknownSince'),
    unknownTimes: number('unknownTimes') ?? 0,
    faults: number('faults') ?? 0,
    stallBase: text('stallBase'),
    decision: json<Decision | null>('decision', null),
  };
}

/** An attempt that nothing has happened to, for a document about a job that never became one. */
export function blankAttempt(scrape: string, submittedAt: number): Attempt {
  const attempt = decodeAttempt(scrape, { n: '1', ph: '0', at: String(submittedAt) });
  if (attempt === null) throw new Error('an attempt with a number and a phase');
  return attempt;
}

function decodeSlice(value: string | null): Slice | null {
  const parts = value?.split(',').map(Number) ?? [];
  const [index, offset, limit] = parts;
  return index === undefined || offset === undefined || limit === undefined ? null : { index, offset, limit };
}

/** Field, value, field, value … as Lua gives a hash. */
function fieldsOf(flat: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = Object.create(null);
  for (let index = 0; index + 1 < flat.length; index += 2) {
    fields[flat[index] as string] = flat[index + 1] as string;
  }
  return fields;
}

/** What is known of a scrape that was published already. */
export interface Published {
  readonly outcome: string;
  /** How often the public job had ended when it was published; more now means that somebody retried it. */
  readonly finishes: number;
}

/**
 * How saving a run went. `known`: it was saved before. `orphan`: the attempt has another run or ended without one, so this
 * one must be aborted. `claimed`: another scrape with an equal input took it for its own.
 */
export type SavedRun = 'saved' | 'known' | 'orphan' | 'claimed';

/** Reads and writes attempts' hashes; every write but the run id's goes through the job's lock. */
export class AttemptStore {
  constructor(
    private readonly redis: ScriptedRedis,
    readonly keys: Keys,
  ) {}

  /** One round trip: the attempt, with a cancel of its whole batch taken into account. */
  async load(scrape: string): Promise<{ attempt: Attempt | null; published: Published | null }> {
    const batch = scrape.slice(0, scrape.indexOf('.'));
    const [flat, batchCancel, waiting, added] = (await this.redis.trawlLoad(
      this.keys.attempt(scrape),
      this.keys.batch(batch),
      this.keys.waiting(scrape),
      this.keys.job(publicQueue, scrape),
      scrape,
    )) as [string[], string | null, string | null, string | null];
    const fields = fieldsOf(flat);
    const known =
      fields.ph === undefined && waiting !== null
        ? { ...fields, n: waiting, ph: '0', at: added ?? '0' }
        : fields;
    const attempt = decodeAttempt(scrape, known);
    const published =
      fields.ph === '6' ? { outcome: fields.oc ?? '', finishes: Number(fields.am ?? 0) } : null;
    if (attempt === null || typeof batchCancel !== 'string') return { attempt, published };
    const begunAt = Number(fields.bt ?? attempt.submittedAt);
    const covered = attempt.cancelledAt === null && begunAt <= Number(batchCancel);
    return {
      attempt: covered ? { ...attempt, cancelledAt: Number(batchCancel) } : attempt,
      published,
    };
  }

  /**
   * Writes `patch` and moves to `phase` if the attempt is in one of `from` and the lock is still ours.
   * @throws TrawlError lock_lost when another worker has the job: stop at once and write nothing more
   */
  async advance(
    attempt: Pick<Attempt, 'scrape' | 'n'>,
    lock: Lock,
    from: { readonly lowest: Phase; readonly highest: Phase },
    phase: Phase | null,
    patch: AttemptPatch,
    event: StoredEvent | null = null,
  ): Promise<Written> {
    const result = await this.redis.trawlAdvance(
      this.keys.attempt(attempt.scrape),
      lock.key,
      this.keys.waiting(attempt.scrape),
      this.keys.job(publicQueue, attempt.scrape),
      this.keys.events,
      attempt.scrape,
      lock.token,
      attempt.n,
      phaseRank(from.lowest),
      phaseRank(from.highest),
      phase === null ? -1 : phaseRank(phase),
      event?.type ?? '',
      eventBound,
      event?.id ?? '',
      event?.batch ?? '',
      event === null ? '' : JSON.stringify(event.data),
      ...encodePatch(patch),
    );
    if (result === 0)
      throw new TrawlError('lock_lost', `the lock of ${attempt.scrape} is held by another worker`);
    return result === 1 ? 'done' : 'stale';
  }

  /** Saves the run of a start, whoever holds the lock by now: it was paid for. The first time, `scrape.started` is told. */
  async saveRun(
    attempt: Pick<Attempt, 'scrape' | 'n'>,
    account: string,
    intentAt: number | null,
    runId: string,
    patch: AttemptPatch,
    subject: Pick<RunSpec, 'id' | 'batch' | 'server' | 'tool'>,
  ): Promise<SavedRun> {
    const result = await this.redis.trawlSaveRun(
      this.keys.attempt(attempt.scrape),
      this.keys.claim(account, runId),
      this.keys.events,
      attempt.n,
      intentAt ?? '',
      runId,
      attempt.scrape,
      eventBound,
      subject.id,
      subject.batch,
      JSON.stringify({ server: subject.server, tool: subject.tool, runId, attempt: attempt.n }),
      ...encodePatch(patch),
    );
    return (['saved', 'known', 'orphan', 'claimed'] as const)[Number(result) - 1] ?? 'orphan';
  }

  /** Begins attempt `n + 1`; false when that has happened already. */
  async nextAttempt(
    attempt: Attempt,
    lock: Lock,
    usage: number | null,
    published: string | null,
    claimMs: number,
  ): Promise<boolean> {
    const batch = attempt.scrape.slice(0, attempt.scrape.indexOf('.'));
    const result = await this.redis.trawlNextAttempt(
      this.keys.attempt(attempt.scrape),
      lock.key,
      this.keys.batch(batch),
      lock.token,
      attempt.n,
      usage ?? '',
      published ?? '',
      claimMs,
    );
    if (result === 0)
      throw new TrawlError('lock_lost', `the lock of ${attempt.scrape} is held by another worker`);
    return result === 1;
  }
}
