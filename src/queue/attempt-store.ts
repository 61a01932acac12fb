import { TrawlError } from '../errors.js';
import type { Attempt, Phase, RunSpec } from '../run/attempt.js';
import { phaseRank } from '../run/attempt.js';
import {
  type AttemptPatch,
  decodeAttempt,
  decodeGlance,
  encodePatch,
  fieldsOf,
  glancedFields,
} from './attempt-fields.js';
import { type Keys, publicQueue } from './names.js';
import { eventBound } from './publish.js';
import type { ScriptedRedis } from './scripts.js';

/** An attempt's hash as the attempt, with a cancel of its whole batch taken into account; null when there is none. */
export function attemptOf(
  scrape: string,
  fields: Record<string, string>,
  batchCancel: string | null,
): Attempt | null {
  const attempt = decodeAttempt(scrape, fields);
  if (attempt === null || batchCancel === null || attempt.cancelledAt !== null) return attempt;
  const begunAt = Number(fields.bt ?? attempt.submittedAt);
  return begunAt <= Number(batchCancel) ? { ...attempt, cancelledAt: Number(batchCancel) } : attempt;
}

export { type AttemptPatch, blankAttempt } from './attempt-fields.js';

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
    const published =
      fields.ph === '6' ? { outcome: fields.oc ?? '', finishes: Number(fields.am ?? 0) } : null;
    return { attempt: attemptOf(scrape, known, batchCancel), published };
  }

  /** Where attempts stand, in one round trip, for lists: null where there is no hash (it only waits, or is gone). */
  async glance(scrapes: readonly string[]): Promise<(Attempt | null)[]> {
    if (scrapes.length === 0) return [];
    const pipeline = this.redis.pipeline();
    for (const scrape of scrapes) pipeline.hmget(this.keys.attempt(scrape), ...glancedFields);
    const replies = (await pipeline.exec()) ?? [];
    return scrapes.map((scrape, index) => {
      const [error, values] = replies[index] ?? [null, []];
      if (error) throw error;
      return decodeGlance(scrape, values as (string | null)[]);
    });
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
