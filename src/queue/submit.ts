import { digestOf, jobKey } from '../scrape/identity.js';
import { jobData } from '../scrape/job-data.js';
import type { OutcomeDocument, Scrape } from '../scrape/types.js';
import type { Sink } from '../sinks/contract.js';
import type { Tracing } from '../tracing/tracing.js';
import type { Keys } from './names.js';
import { publicQueue } from './names.js';
import type { Queues } from './queues.js';
import type { ScriptedRedis } from './scripts.js';

export interface SubmitDeps {
  readonly redis: ScriptedRedis;
  readonly keys: Keys;
  readonly queues: Queues;
  readonly sink: Pick<Sink, 'find'>;
  /** Absent: none of them begins a trace. */
  readonly tracing?: Pick<Tracing, 'submitted'> | undefined;
}

/** `known`: under way or settled in Redis. `settled`: Redis has forgotten it, its outcome is on disk. */
export type Submitted =
  | { readonly result: 'submitted' | 'known' | 'conflict'; readonly key: string }
  | { readonly result: 'settled'; readonly key: string; readonly outcome: OutcomeDocument };

/**
 * Submits scrapes to the public queue in one go; at most a few hundred at a time. The same (batch, id) again, also
 * twice in one call, starts nothing and says so; with another tool, input or server it is a conflict (design A2,
 * Identity). The results are in the order of the scrapes.
 */
export async function submitScrapes(deps: SubmitDeps, scrapes: readonly Scrape[]): Promise<Submitted[]> {
  if (scrapes.length === 0) return [];
  const known = await knownDigests(deps, scrapes);
  const checked = await Promise.all(
    scrapes.map((scrape, index) => check(deps, scrape, known[index] ?? null)),
  );
  const fresh = new Map<string, { scrape: Scrape; digest: string }>();
  const results = checked.map((result, index): Submitted => {
    if (result.result !== 'submitted') return result;
    const scrape = scrapes[index] as Scrape;
    const digest = digestOf(scrape.tool, scrape.input, scrape.server);
    const earlier = fresh.get(result.key);
    if (earlier === undefined) fresh.set(result.key, { scrape, digest });
    else return { result: earlier.digest === digest ? 'known' : 'conflict', key: result.key };
    return result;
  });
  if (fresh.size > 0) {
    const jobs = [...fresh].map(([jobId, { scrape }]) => ({
      name: 'scrape',
      data: jobData(scrape),
      opts: { jobId, ...traceOf(deps, jobId, scrape) },
    }));
    await deps.queues.public.addBulk(jobs);
  }
  return results;
}

/** A trace for each scrape: one for a whole file would be unreadable, and is refused by most that store them. */
function traceOf({ tracing }: SubmitDeps, jobId: string, { server, tool }: Scrape) {
  const telemetry = tracing?.submitted({ scrapeId: jobId, server, tool });
  return telemetry === undefined ? {} : { telemetry };
}

/** @param inRedis the digest Redis knows the pair by, '' when it does not say, null when it is not known */
async function check(deps: SubmitDeps, scrape: Scrape, inRedis: string | null): Promise<Submitted> {
  const key = jobKey(scrape.batch, scrape.id);
  const digest = digestOf(scrape.tool, scrape.input, scrape.server);
  if (inRedis !== null) {
    return { result: inRedis === '' || inRedis === digest ? 'known' : 'conflict', key };
  }
  const onDisk = await deps.sink.find(scrape.batch, scrape.id);
  if (onDisk === null) return { result: 'submitted', key };
  const same = onDisk.digest === null || onDisk.digest === digest;
  return same ? { result: 'settled', key, outcome: onDisk.outcome } : { result: 'conflict', key };
}

/** Per submission: the digest Redis knows the pair by, '' when it does not say, null when it is not known. */
async function knownDigests(deps: SubmitDeps, scrapes: readonly Scrape[]): Promise<(string | null)[]> {
  const pipeline = deps.redis.pipeline();
  for (const scrape of scrapes) {
    const key = jobKey(scrape.batch, scrape.id);
    pipeline.hget(deps.keys.attempt(key), 'dg');
    pipeline.hget(deps.keys.job(publicQueue, key), 'data');
  }
  const replies = (await pipeline.exec()) ?? [];
  const reply = (index: number): string | null => {
    const [error, value] = replies[index] ?? [null, null];
    if (error) throw error;
    return (value as string | null) ?? null;
  };
  return scrapes.map((scrape, index) => {
    const digest = reply(2 * index);
    if (digest !== null) return digest;
    const data = reply(2 * index + 1);
    return data === null ? null : digestOfData(data, scrape);
  });
}

/** Not accepted yet: what was submitted is compared as it was written; '' when it does not say. */
export function digestOfData(data: string, scrape: Scrape): string {
  try {
    const job = JSON.parse(data) as { tool?: unknown; input?: unknown };
    if (typeof job.input !== 'object' || job.input === null) return '';
    return digestOf(scrape.tool, job.input as Record<string, unknown>, scrape.server);
  } catch {
    return '';
  }
}
