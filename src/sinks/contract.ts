import type { OutcomeDocument } from '../scrape/types.js';

/** Which attempt of which scrape is being written. */
export interface SinkTarget {
  readonly batch: string;
  readonly id: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** Digest of tool and input, kept beside the results so that a re-submission can be compared after Redis forgot it. */
  readonly digest: string;
}

/**
 * Where results go (design A5). Every method may be called again after a crash, or by two processes at once, with the
 * same arguments; the first durable write wins and the others find it done. Nothing is durable before the promise
 * resolves. Throws `SinkHeldError` when the destination refuses writes for a reason that may pass (disk full,
 * permission, gone): the job is held and tried again. Throws a TrawlError `attempt_superseded` when a later attempt has
 * begun (this writer woke up too late and must stop), `job_conflict` when this attempt began with another digest.
 * Ids are validated before they come here, record keys are not.
 */
export interface Sink {
  readonly name: string;
  /** Moves an earlier attempt's leftovers away and makes room for this attempt; does nothing when it is current. */
  begin(target: SinkTarget): Promise<void>;
  /**
   * Publishes page `index`. `existed` says that it was there already; it is left as it is. `lines` counts those of the page
   * that is durable, whoever wrote it.
   */
  writePage(target: SinkTarget, page: SinkPage): Promise<{ existed: boolean; bytes: number; lines: number }>;
  /** The items and (unpacked) bytes of page `index`, null when it is not there: its writer may have died before it said so. */
  findPage(target: SinkTarget, index: number): Promise<{ items: number; bytes: number } | null>;
  writeRecord(target: SinkTarget, record: SinkRecord): Promise<{ existed: boolean; bytes: number }>;
  /** Publishes the outcome last. Returns the document that is durable: an earlier one of the same attempt wins. */
  settle(target: SinkTarget, outcome: OutcomeDocument): Promise<OutcomeDocument>;
  /**
   * What is known of a settled scrape, null when it is not settled here. A destination that is away for the moment is no
   * answer: SinkHeldError.
   */
  find(batch: string, id: string): Promise<{ outcome: OutcomeDocument; digest: string | null } | null>;
  /**
   * The highest attempt that ever began here, 0 when none did. A scrape that is accepted anew (Redis forgot it) starts
   * above it, so that pages of another run are moved away and never mixed with its own.
   */
  lastAttempt(batch: string, id: string): Promise<number>;
  /** Human-readable place of a scrape's results, as `destination` in the outcome document. */
  destination(target: Pick<SinkTarget, 'batch' | 'id'>): string;
  /** Proves that writing works now (a probe); throws `SinkHeldError` otherwise. */
  check(): Promise<void>;
  close(): Promise<void>;
}

export interface SinkPage {
  readonly index: number;
  /** Position of the first line in the dataset. */
  readonly offset: number;
  /** One JSON document each, no line breaks. */
  readonly lines: readonly string[];
}

export interface SinkRecord {
  /** From outside, unchecked. */
  readonly key: string;
  readonly contentType: string;
  readonly body: Buffer;
}

/** The sink refuses writes for a reason that may pass. The work is held, nothing is lost. */
export class SinkHeldError extends Error {
  readonly reason: 'full' | 'denied' | 'missing' | 'unreachable' | 'other';

  constructor(reason: SinkHeldError['reason'], message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'SinkHeldError';
    this.reason = reason;
  }
}
