import type { Config } from '../config.js';
import { safeId } from '../scrape/identity.js';
import { type JobSource, parseJob } from '../scrape/parse.js';
import type { Scrape } from '../scrape/types.js';
import type { IntakeEntry } from './intake-source.js';

export type IntakeJob =
  | { readonly ok: true; readonly scrape: Scrape }
  | { readonly ok: false; readonly reason: string };

/** Beside the input a job holds little: with this much more than `limits.inputBytes` it is no job. Bytes. */
const roomBeside = 65_536;

/** A longer job is refused unread. Bytes. */
export function longestJob(config: Config): number {
  return config.limits.inputBytes + roomBeside;
}

/**
 * Reads one job as it stands in the intake stream or list; never throws. Without an id each entry is a scrape of its
 * own, with an id made of the entry's: equal jobs that are meant to be one have to say so by an equal id.
 */
export function readIntakeJob(
  config: Config,
  source: JobSource & ('stream' | 'list'),
  { ref, text, bytes }: IntakeEntry,
): IntakeJob {
  if (bytes === null)
    return { ok: false, reason: 'Expected a JSON job in the field "job", found no such field.' };
  if (bytes > longestJob(config)) {
    return {
      ok: false,
      reason: `Expected a job of at most ${longestJob(config)} bytes, found ${bytes} bytes.`,
    };
  }
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    const found = bytes === 0 ? 'nothing' : 'something that does not parse as JSON';
    return { ok: false, reason: `Expected one JSON document, found ${found}.` };
  }
  const parsed = parseJob(raw, { config, source, nameless: () => safeId(`${source}:${ref}`) });
  if (parsed.ok) return { ok: true, scrape: parsed.scrape };
  const listed = parsed.problems.slice(0, 5).map((problem) => `${problem.field}: ${problem.message}`);
  return { ok: false, reason: `${listed.join('; ')}.` };
}
