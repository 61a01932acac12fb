import type { Config } from '../config.js';
import { type JobSource, parseJob } from '../scrape/parse.js';
import type { Scrape } from '../scrape/types.js';

export type IntakeJob =
  | { readonly ok: true; readonly scrape: Scrape }
  | { readonly ok: false; readonly reason: string };

/** Beside the input a job holds little: this much more than `limits.inputBytes` is no job. */
const roomBeside = 65_536;

/** Reads one job as it stands in the intake stream or list; never throws, and never parses what is far too large. */
export function readIntakeJob(config: Config, source: JobSource, text: string): IntakeJob {
  if (text === '') return { ok: false, reason: 'Expected a JSON job in the field "job", found none.' };
  const largest = config.limits.inputBytes + roomBeside;
  if (text.length > largest) {
    return {
      ok: false,
      reason: `Expected a job of at most ${largest} bytes, found ${text.length} characters.`,
    };
  }
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return { ok: false, reason: 'Expected one JSON document, found something that does not parse as JSON.' };
  }
  const parsed = parseJob(raw, { config, source });
  if (parsed.ok) return { ok: true, scrape: parsed.scrape };
  const listed = parsed.problems.slice(0, 5).map((problem) => `${problem.field}: ${problem.message}`);
  return { ok: false, reason: `${listed.join('; ')}.` };
}
