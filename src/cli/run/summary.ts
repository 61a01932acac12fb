import { relative } from 'node:path';
import { ExitCode } from '../../errors.js';
import { cleanText } from '../../scrape/clean-text.js';
import { counted, money, number, span } from '../format.js';
import type { Colors } from '../output.js';
import type { End } from './session.js';
import type { Cause, Tally } from './tally.js';

export interface RunSummary {
  readonly label: string;
  readonly batch: string;
  /** Every batch the file names, the default one among them. */
  readonly batches: readonly string[];
  readonly tally: Tally;
  readonly submitted: number;
  readonly tookMs: number;
  readonly resultsDir: string;
  readonly gzip: boolean;
  readonly end: End;
}

/** Ids named for each cause; all of them are in `--json` and in the outcome documents. */
const namedScrapes = 5;

/** Exit code of a run (design A6). */
export function exitCodeOf({ tally, end }: Pick<RunSummary, 'tally' | 'end'>): number {
  if (end !== 'settled') return ExitCode.interrupted;
  if (tally.ofClass('failure') > 0) return ExitCode.failure;
  return tally.ofClass('warning') > 0 ? ExitCode.warnings : ExitCode.ok;
}

export function summaryLines(summary: RunSummary, colors: Colors): string[] {
  const { tally, batch, end } = summary;
  const lines = [
    `${colors.bold(batch)}: ${number(tally.settled)} of ${counted(tally.total, 'scrape')} settled in ${span(summary.tookMs)}${earlier(tally)}`,
    `  ${[...tally.outcomes].map(([outcome, count]) => `${number(count)} ${outcome}`).join(', ') || 'none settled'}`,
    `  ${counted(tally.items, 'item')}, spent ${spent(tally)}`,
  ];
  for (const kind of ['failure', 'warning', 'note'] as const) {
    const causes = tally.byCause().filter((cause) => cause.kind === kind);
    if (causes.length === 0) continue;
    lines.push('', heading(kind, causes, colors));
    for (const cause of causes) lines.push(...causeLines(cause, summary, colors));
  }
  lines.push('', ...resultLines(summary));
  if (end !== 'settled') lines.push('', interruptedLine(summary));
  return lines;
}

export function summaryJson(summary: RunSummary): unknown {
  const { tally } = summary;
  return {
    file: summary.label,
    batch: summary.batch,
    batches: summary.batches,
    scrapes: tally.total,
    submitted: summary.submitted,
    settled: tally.settled,
    settledEarlier: tally.earlier,
    outcomes: Object.fromEntries(tally.outcomes),
    items: tally.items,
    usageUsd: tally.usageUsd,
    usageUnknown: tally.usageUnknown,
    seconds: Math.round(summary.tookMs / 100) / 10,
    end: summary.end,
    causes: tally.byCause(),
    results: summary.batches.map((batch) => `${summary.resultsDir}/batch=${batch}`),
    exitCode: exitCodeOf(summary),
  };
}

function earlier(tally: Tally): string {
  return tally.earlier === 0 ? '' : ` (${number(tally.earlier)} of them before this run)`;
}

function spent(tally: Tally): string {
  const unknown = tally.usageUnknown;
  return `${money(tally.usageUsd)}${unknown === 0 ? '' : ` and what ${counted(unknown, 'run')} cost that the server did not tell`}`;
}

function heading(kind: Cause['kind'], causes: readonly Cause[], colors: Colors): string {
  const count = causes.reduce((sum, cause) => sum + cause.scrapes.length, 0);
  switch (kind) {
    case 'failure':
      return colors.red(counted(count, 'failure'));
    case 'warning':
      return colors.yellow(counted(count, 'warning'));
    case 'note':
      return colors.bold(`${counted(count, 'note')} on results`);
    default:
      return kind satisfies never;
  }
}

function causeLines(cause: Cause, summary: RunSummary, colors: Colors): string[] {
  const { scrapes } = cause;
  const named = scrapes.slice(0, namedScrapes).map((key) => shortName(key, summary));
  const more = scrapes.length - named.length;
  return [
    `  ${number(scrapes.length)} × ${cause.outcome}: ${cleanText(cause.message, 500)}`,
    colors.dim(`      ${named.join(', ')}${more > 0 ? ` and ${number(more)} more` : ''}`),
  ];
}

/** The batch is left out where the file has but one. */
function shortName(key: string, { batches }: RunSummary): string {
  return batches.length === 1 ? key.slice(key.indexOf('.') + 1) : key;
}

function resultLines({ batches, resultsDir, gzip, tally }: RunSummary): string[] {
  const from = relative(process.cwd(), resultsDir);
  const dir = from === '' ? '.' : from.startsWith('..') ? resultsDir : from;
  const only = batches.length === 1 ? batches[0] : '*';
  const places = `${dir}/batch=${only}/scrape=*/`;
  if (tally.settled === 0) return [`Results will be in ${places}`];
  const pages = `${places}page-*.ndjson${gzip ? '.gz' : ''}`;
  const lines = [`Results   ${places}  (page-*.ndjson, outcome.json)`];
  if (tally.items > 0) {
    lines.push(
      `Load      duckdb -c "SELECT * FROM read_json_auto('${pages}', union_by_name=true)"`,
      ...(batches.length === 1 ? [`          trawl export --batch ${only} --out ${only}-items.ndjson`] : []),
    );
  }
  if (tally.ofClass('failure') > 0) {
    const batch = batches.length === 1 ? only : 'NAME';
    lines.push(`Look      trawl status ID --batch ${batch}`, `Again     trawl retry ID --batch ${batch}`);
  }
  return lines;
}

function interruptedLine({ end, tally }: RunSummary): string {
  const left = counted(tally.total - tally.settled, 'scrape');
  const resume = `${left} left: run the same command again to resume; nothing is done or paid for twice.`;
  switch (end) {
    case 'settled':
      return '';
    case 'drained':
      return `Interrupted. ${resume}`;
    case 'stopped':
    case 'left':
      return `Interrupted. Runs under way go on at the server, until their deadline at most. ${resume}`;
    case 'redis_away':
      return `Redis did not answer for too long. ${resume}`;
    default:
      return end satisfies never;
  }
}
