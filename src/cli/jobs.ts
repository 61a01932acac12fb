import type { Config } from '../config.js';
import { TrawlError } from '../errors.js';
import { type Known, type KnownDeps, lookUp } from '../queue/known.js';
import { jobKey } from '../scrape/identity.js';
import { batchOfFile } from '../scrape/job-source.js';
import { listedProblems } from '../scrape/problem.js';
import { type JobFile, type JobsReport, jobsError, openJobs } from '../scrape/read-jobs.js';
import type { Scrape } from '../scrape/types.js';

/** Scrapes looked up or submitted in one go. */
export const chunkSize = 500;

export interface CheckedJobs extends JobFile {
  readonly report: JobsReport;
  /** The batch of jobs that name none. */
  readonly batch: string;
}

/**
 * Opens FILE, or stdin for `-`, and reads all of it before anything else is done.
 * @param batch wins over what the jobs say
 * @throws TrawlError `input_unreadable`, `input_empty`, `job_invalid` listing the first 20 problems
 */
export async function checkJobs(
  file: string,
  config: Config,
  batch: string | undefined,
): Promise<CheckedJobs> {
  if (file === '-' && process.stdin.isTTY) {
    process.stderr.write('Reading jobs from the terminal, one a line; Ctrl-D ends them.\n');
  }
  const lines = file === '-' ? { stream: process.stdin } : { path: file };
  const jobs = await openJobs(lines, { config, batch });
  try {
    const report = await jobs.check();
    if (report.problemCount > 0) throw jobsError(jobs.label, report);
    const named = batch ?? (file === '-' ? 'default' : batchOfFile(file));
    return { ...jobs, report, batch: named };
  } catch (error) {
    await jobs.close();
    throw error;
  }
}

export interface LookedUp {
  readonly scrape: Scrape;
  readonly key: string;
  readonly known: Known;
}

/** Every scrape of a file with what is known of it, in bounded memory. Changes nothing. */
export async function* lookUpAll(jobs: JobFile, deps: KnownDeps): AsyncGenerator<LookedUp> {
  for await (const chunk of chunks(jobs)) {
    const states = await lookUp(deps, chunk);
    for (const [index, scrape] of chunk.entries()) {
      yield { scrape, key: jobKey(scrape.batch, scrape.id), known: states[index] as Known };
    }
  }
}

export async function* chunks(jobs: JobFile): AsyncGenerator<Scrape[]> {
  let chunk: Scrape[] = [];
  for await (const scrape of jobs.scrapes()) {
    chunk.push(scrape);
    if (chunk.length < chunkSize) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

/** Scrapes whose (batch, id) is known with another tool, input or server (design A2): all of them at once. */
export class Conflicts {
  private readonly keys: string[] = [];
  private count = 0;

  add(key: string): void {
    this.count += 1;
    if (this.keys.length < listedProblems) this.keys.push(key);
  }

  get size(): number {
    return this.count;
  }

  /** @throws TrawlError `job_conflict` when there are any */
  throwIfAny(label: string): void {
    if (this.count === 0) return;
    const lines = this.keys.map((key) => `${label}: ${key} is known with another tool, input or server`);
    if (this.count > this.keys.length) lines.push(`${label}: and ${this.count - this.keys.length} more`);
    throw new TrawlError('job_conflict', lines.join('\n'), {
      hint: 'Nothing was submitted. Give these scrapes other ids, or all of them another batch with --batch NAME.',
    });
  }
}
