import { cleanText } from './clean-text.js';

/** One thing that is wrong with a job document. */
export interface Problem {
  /** Path in the document, such as `options.memory`; `job` for the document as a whole. */
  readonly field: string;
  /** What was expected and found. Safe to print: foreign text in it is short and free of control characters. */
  readonly message: string;
}

/** A problem and the line of the file it is on, counted from 1. */
export interface LineProblem extends Problem {
  readonly line: number;
}

/** How many problems are kept and printed; the rest is counted. */
export const listedProblems = 20;

/** Problems as `file:line: field: message`, one a line, with a last line that counts what is not shown. */
export function formatProblems(
  file: string,
  problems: readonly LineProblem[],
  total = problems.length,
): string {
  const name = cleanText(file, 200);
  const shown = problems.slice(0, listedProblems);
  const lines = shown.map((p) => `${name}:${p.line}: ${p.field}: ${p.message}`);
  if (total > shown.length) lines.push(`${name}: and ${total - shown.length} more`);
  return lines.join('\n');
}
