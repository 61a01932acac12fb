import type { Row } from './verdict.js';

const headings = [
  'incident',
  'expected',
  'told',
  'to fire',
  'to resolve',
  'muted',
  'false',
  'verdict',
] as const;

/** The table that is printed, as Markdown. Times are of a real night: what passed here, divided by the windows' factor. */
export function table(rows: readonly Row[], windowFactor: number): string {
  const lines = rows.map((row) => cells(row, windowFactor));
  const all = [[...headings], ...lines];
  const widths = headings.map((_, column) => Math.max(...all.map((line) => (line[column] ?? '').length)));
  const print = (line: readonly string[]) =>
    `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [print(headings), rule, ...lines.map(print)].join('\n');
}

function cells(
  { incident, course, fired, pages, tickets, falseOnes, faults }: Row,
  factor: number,
): string[] {
  const told = [...pages.map((each) => `page ${each}`), ...tickets.map((each) => `ticket ${each}`)];
  const notified = new Set([...pages, ...tickets].flatMap((each) => each.split('+')));
  const muted = fired.filter((name) => !notified.has(name));
  const span = (from: number, to: number | null) => (to === null ? '–' : timeOf((to - from) / 1_000, factor));
  const { expected } = incident;
  return [
    incident.name,
    expected === null ? 'none' : short(expected),
    told.length === 0 ? 'nobody' : told.map(short).join(', '),
    expected === null ? '' : span(course.causedAt, course.firedAt),
    expected === null ? '' : span(course.healedAt, course.resolvedAt),
    muted.length === 0 ? '–' : muted.map(short).join(', '),
    falseOnes.length === 0 ? '0' : falseOnes.map(short).join(', '),
    faults.length === 0 ? 'ok' : `FAILED: ${faults.join('; ')}`,
  ];
}

const short = (name: string) => name.replaceAll('Trawl', '');

/** `38 s (8 min)`: here, and on a real night. */
function timeOf(seconds: number, factor: number): string {
  const real = seconds / factor / 60;
  return `${Math.round(seconds)} s (${real < 10 ? real.toFixed(1) : Math.round(real)} min)`;
}
