import { CommanderError } from 'commander';
import { ExitCode, TrawlError } from '../errors.js';
import { cleanText } from '../scrape/clean-text.js';
import { SinkHeldError } from '../sinks/contract.js';
import { errorColors, say } from './output.js';

/** Lines of a message that are printed at most: twenty problems and what goes with them fit easily. */
const maxLines = 200;

/** Says on stderr what went wrong and what to do, and returns the exit code (design A6). */
export function reportError(error: unknown, debug: boolean): number {
  // Commander has written its message, or the help that was asked for, already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
  if (error instanceof TrawlError) {
    sayProblem(error.message, error.hint);
    if (debug && error.cause !== undefined) say(stackOf(error.cause));
    return error.exitCode;
  }
  if (error instanceof SinkHeldError) {
    sayProblem(error.message, 'Make room or give this user the right to write there, then run it again.');
    return ExitCode.failure;
  }
  const message = error instanceof Error ? error.message : String(error);
  sayProblem(
    `unexpected error: ${message}`,
    debug ? undefined : 'Set TRAWL_DEBUG=1 to see where it happened.',
  );
  if (debug) say(stackOf(error));
  return ExitCode.failure;
}

/** A message of one line is marked as ours; a list of problems names files and lines, and stands for itself. */
function sayProblem(message: string, hint: string | undefined): void {
  const { red, dim } = errorColors();
  const lines = printable(message);
  if (lines.length === 1) say(`${red('trawl:')} ${lines[0]}`);
  else for (const line of lines) say(line);
  for (const line of hint === undefined ? [] : printable(hint)) say(dim(line));
}

/** Indentation is part of an example in a hint; everything else from outside is made safe. */
function printable(text: string): string[] {
  return text
    .split('\n')
    .slice(0, maxLines)
    .map((line) => (/^ */.exec(line)?.[0] ?? '') + cleanText(line, 2000));
}

function stackOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return printable(stack).join('\n');
}
