import { isUtf8 } from 'node:buffer';
import { TrawlError } from '../errors.js';
import { canonicalJson, shortHash } from './canonical.js';
import { cleanText } from './clean-text.js';
import { derivedId, jobKey } from './identity.js';
import { batchOfFile, type JobLines, openJobLines, type ReadableJobs } from './job-source.js';
import { splitLines } from './lines.js';
import { type ParseContext, parseJob } from './parse.js';
import { formatProblems, type LineProblem, listedProblems } from './problem.js';
import type { Scrape } from './types.js';

export { batchOfFile, type JobLines } from './job-source.js';
export { formatProblems, type LineProblem } from './problem.js';

export type ReadContext = Pick<ParseContext, 'config' | 'batch' | 'defaultBatch'>;

/** What a pass over all lines found. */
export interface JobsReport {
  /** Different scrapes. */
  readonly scrapes: number;
  /** The first 20; `problemCount` counts all. */
  readonly problems: readonly LineProblem[];
  readonly problemCount: number;
  /** Lines that repeat an earlier one with the same id and content; they are left out. */
  readonly duplicates: number;
}

/** A file, or what stdin held, that is validated as a whole before anything of it is submitted. */
export interface JobFile {
  /** For messages: the path, or `stdin`. */
  readonly label: string;
  /** Reads every line; problems are returned, not thrown. @throws TrawlError `input_empty`, `input_unreadable`. */
  check(): Promise<JobsReport>;
  /**
   * Yields each scrape once, in the order of the lines, in bounded memory (some 200 bytes a line for its identity).
   * @throws TrawlError `job_invalid` at the first bad line. Call `check` first: only it compares lines of the same id.
   */
  scrapes(): AsyncGenerator<Scrape>;
  close(): Promise<void>;
}

/**
 * Opens a file of jobs, or a stream of them, which is spooled to disk (mode 0600) so that it can be read twice.
 * Jobs that name no batch get the file's base name.
 */
export async function openJobs(lines: JobLines, context: ReadContext): Promise<JobFile> {
  const source = await openJobLines(lines);
  const full: ParseContext = {
    ...context,
    source: 'path' in lines ? 'file' : 'stdin',
    defaultBatch: context.defaultBatch ?? ('path' in lines ? batchOfFile(lines.path) : undefined),
  };
  return {
    label: source.label,
    check: () => check(source, full),
    scrapes: () => scrapes(source, full),
    close: () => source.close(),
  };
}

/** All of a job file at once, for files that fit in memory; the same rules as `openJobs`. */
export async function readJobs(
  lines: JobLines,
  context: ReadContext,
): Promise<Omit<JobsReport, 'scrapes'> & { readonly scrapes: readonly Scrape[] }> {
  const file = await openJobs(lines, context);
  try {
    const report = await file.check();
    const all: Scrape[] = [];
    if (report.problemCount === 0) for await (const scrape of file.scrapes()) all.push(scrape);
    return { ...report, scrapes: all };
  } finally {
    await file.close();
  }
}

/** The error that a command ends with when lines are bad. */
export function jobsError(label: string, report: JobsReport): TrawlError {
  return new TrawlError('job_invalid', formatProblems(label, report.problems, report.problemCount), {
    hint: 'Nothing was submitted.',
  });
}

async function check(source: ReadableJobs, context: ParseContext): Promise<JobsReport> {
  let found = 0;
  let duplicates = 0;
  let problemCount = 0;
  const problems: LineProblem[] = [];
  for await (const line of parsedLines(source, context, contentHash)) {
    if (line.kind === 'scrape') found += 1;
    else if (line.kind === 'duplicate') duplicates += 1;
    else {
      problemCount += line.problems.length;
      if (problems.length < listedProblems) problems.push(...line.problems);
    }
  }
  if (found + problemCount === 0) {
    throw new TrawlError('input_empty', `${source.label}: expected one job a line, found none`);
  }
  return { scrapes: found, duplicates, problemCount, problems: problems.slice(0, listedProblems) };
}

async function* scrapes(source: ReadableJobs, context: ParseContext): AsyncGenerator<Scrape> {
  // The first pass has compared contents; this one only has to know an id again.
  for await (const line of parsedLines(source, context, () => '')) {
    switch (line.kind) {
      case 'scrape':
        yield line.scrape;
        break;
      case 'duplicate':
        break;
      case 'bad':
        throw new TrawlError('job_invalid', formatProblems(source.label, line.problems));
      default:
        line satisfies never;
    }
  }
}

type ParsedLine =
  | { readonly kind: 'scrape'; readonly scrape: Scrape }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'bad'; readonly problems: readonly LineProblem[] };

function contentHash(scrape: Scrape): string {
  return shortHash(canonicalJson(scrape));
}

async function* parsedLines(
  source: ReadableJobs,
  context: ParseContext,
  contentOf: (scrape: Scrape) => string,
): AsyncGenerator<ParsedLine> {
  const known = new Map<string, { line: number; content: string }>();
  const equalLines = new Map<string, number>();
  const nameless = (raw: Record<string, unknown>) => {
    const first = derivedId(raw, 1);
    const count = (equalLines.get(first) ?? 0) + 1;
    equalLines.set(first, count);
    return count === 1 ? first : derivedId(raw, count);
  };
  for await (const { number, bytes } of splitLines(source.read(), lineBound(context))) {
    const read = readLine(bytes, lineBound(context));
    if (read === null) continue;
    if (!read.ok) {
      yield { kind: 'bad', problems: [{ line: number, field: 'job', message: read.message }] };
      continue;
    }
    const parsed = parseJob(read.raw, { ...context, nameless });
    if (!parsed.ok) {
      yield { kind: 'bad', problems: parsed.problems.map((problem) => ({ line: number, ...problem })) };
      continue;
    }
    const { scrape } = parsed;
    const key = jobKey(scrape.batch, scrape.id);
    const content = contentOf(scrape);
    const earlier = known.get(key);
    if (earlier === undefined) {
      known.set(key, { line: number, content });
      yield { kind: 'scrape', scrape };
    } else if (earlier.content === content) {
      yield { kind: 'duplicate' };
    } else {
      const message =
        `"${cleanText(scrape.id, 130)}" in batch "${scrape.batch}" stands on line ${earlier.line} already, ` +
        'with different content';
      yield { kind: 'bad', problems: [{ line: number, field: 'id', message }] };
    }
  }
}

/** A line holds the input, which may be written with escapes at several times its size, and the other keys. */
function lineBound(context: ParseContext): number {
  return context.config.limits.inputBytes * 6 + 65_536;
}

type LineContent =
  | { readonly ok: true; readonly raw: unknown }
  | { readonly ok: false; readonly message: string };

/** null for a blank line. */
function readLine(bytes: Buffer | null, bound: number): LineContent | null {
  if (bytes === null)
    return { ok: false, message: `expected a line of at most ${bound} bytes, found a longer one` };
  if (!isUtf8(bytes)) return { ok: false, message: 'expected UTF-8 text, found other bytes' };
  const text = bytes.toString('utf8');
  if (text.trim() === '') return null;
  try {
    return { ok: true, raw: JSON.parse(text) };
  } catch (error) {
    const advice = /^\s*(\[\s*(\{\s*)?|\{\s*|\],?\s*|\},?\s*)$/.test(text)
      ? ' (one whole job a line, no list around them)'
      : '';
    return { ok: false, message: `expected JSON${advice}, found a mistake: ${jsonMistake(error)}` };
  }
}

function jsonMistake(error: unknown): string {
  return error instanceof Error ? cleanText(error.message, 80) : 'unknown';
}
