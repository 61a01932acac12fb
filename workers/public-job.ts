import type { Attempt, RunSpec } from '../src/run/attempt.js';
import { cleanText } from '../src/scrape/clean-text.js';
import { digestOf, fromBullJob } from '../src/scrape/identity.js';
import { parseJob } from '../src/scrape/parse.js';
import type { Problem } from '../src/scrape/problem.js';
import type { Scrape } from '../src/scrape/types.js';
import type { WorkerContext } from './context.js';

/** What the public job's worker needs of a scrape once it is under way. */
export interface ScrapeFacts {
  readonly batch: string;
  readonly id: string;
  readonly server: string;
  readonly tool: string;
  readonly meta: unknown;
  readonly onEmpty: RunSpec['onEmpty'];
  readonly retries: number;
  /** Absent when the job could not be read. */
  readonly digest?: string;
}

export type PublicJob =
  | { readonly ok: true; readonly scrape: Scrape }
  /** `facts`: the identity is sound, so an outcome can be left; null: not even that. */
  | { readonly ok: false; readonly message: string; readonly facts: ScrapeFacts | null };

/** Reads a public job as its producer wrote it (design A2); never throws. */
export function readPublicJob(ctx: Pick<WorkerContext, 'config'>, jobId: string, data: unknown): PublicJob {
  const named = fromBullJob({ jobId, data });
  if (!named.ok) return { ok: false, message: sentence(named.problems), facts: null };
  const parsed = parseJob(named.job, { config: ctx.config, source: 'bullmq' });
  if (parsed.ok) return { ok: true, scrape: parsed.scrape };
  const { batch, id, job } = named;
  const server =
    typeof job.server === 'string' && Object.hasOwn(ctx.config.servers, job.server) ? job.server : '';
  const only = Object.keys(ctx.config.servers);
  const facts: ScrapeFacts = {
    batch,
    id,
    server: server === '' && only.length === 1 ? (only[0] as string) : server,
    tool: typeof job.tool === 'string' ? cleanText(job.tool, 80) : '',
    meta: null,
    onEmpty: 'warn',
    retries: 0,
  };
  return { ok: false, message: sentence(parsed.problems), facts };
}

/**
 * A scrape under way no longer depends on what its job says now: the configuration may have changed since it started.
 */
export function factsOf(read: PublicJob, attempt: Attempt | null): ScrapeFacts | null {
  if (read.ok) {
    const { scrape } = read;
    return { ...scrape, digest: digestOf(scrape.tool, scrape.input, scrape.server) };
  }
  const spec = attempt?.spec;
  if (spec === null || spec === undefined) return read.facts;
  return { ...spec, meta: null };
}

function sentence(problems: readonly Problem[]): string {
  const listed = problems.slice(0, 5).map((problem) => `${problem.field}: ${problem.message}`);
  return `The job is not valid: ${listed.join('; ')}.`;
}
