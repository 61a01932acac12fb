import pc from 'picocolors';
import { ExitCode } from '../errors.js';
import { escapeInvisible } from '../scrape/clean-text.js';

export type Colors = ReturnType<typeof pc.createColors>;

/** Colours only where a person looks (https://no-color.org); picocolors' own guess also colours CI logs. */
function colorsFor(stream: NodeJS.WriteStream): Colors {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env;
  const wanted = FORCE_COLOR ? FORCE_COLOR !== '0' : stream.isTTY === true && TERM !== 'dumb';
  return pc.createColors(wanted && !NO_COLOR);
}

export const outColors = (): Colors => colorsFor(process.stdout);
export const errorColors = (): Colors => colorsFor(process.stderr);

/** One line of a result, on stdout. */
export function print(line = ''): void {
  process.stdout.write(`${line}\n`);
}

/** One line for the person at the terminal, on stderr. */
export function say(line = ''): void {
  process.stderr.write(`${line}\n`);
}

/** A document for programs: one, or one a line. */
export function printJson(value: unknown, style: 'document' | 'line' = 'document'): void {
  print(escapeInvisible(JSON.stringify(value, null, style === 'document' ? 2 : undefined)));
}

/** A reader that went away (`| head`) ends the program quietly, whatever it was about to say. */
export function endQuietlyWithoutReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(process.exitCode ?? ExitCode.ok);
  });
  process.stderr.on('error', () => {});
}

export interface Column {
  readonly title: string;
  /** Numbers stand right. */
  readonly align?: 'left' | 'right';
}

/** Aligned columns, two blanks apart; texts are expected to be clean. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const widths = columns.map((column, index) =>
    Math.max(column.title.length, ...rows.map((row) => (row[index] ?? '').length)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, index) => {
        const width = widths[index] ?? 0;
        return columns[index]?.align === 'right' ? cell.padStart(width) : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd();
  return [line(columns.map((column) => column.title)), ...rows.map(line)];
}
