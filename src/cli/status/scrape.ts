import type { ScrapeStatus } from '../../queue/status.js';
import type { Attempt } from '../../run/attempt.js';
import { cleanText } from '../../scrape/clean-text.js';
import { counted, moment, money, number, span } from '../format.js';
import type { Colors } from '../output.js';
import { paintOutcome } from './batch.js';

/** One scrape: where it stands, and what has happened to it so far. */
export function scrapeLines(scrape: ScrapeStatus, now: number, colors: Colors): string[] {
  const { attempt, outcome } = scrape;
  const rows: [string, string][] = [
    ['scrape', colors.bold(scrape.key)],
    ['state', outcome === null ? stateOf(scrape) : paintOutcome(outcome.outcome, outcome.outcome, colors)],
  ];
  if (outcome !== null) {
    rows.push(
      ['', cleanText(outcome.message, 500)],
      ['tool', `${cleanText(outcome.server, 40)} ${cleanText(outcome.tool, 140)}`],
      ['attempt', number(outcome.attempt)],
      ['run', outcome.runId === null ? 'none' : cleanText(outcome.runId, 80)],
      ['submitted', moment(Date.parse(outcome.submittedAt))],
      ['started', outcome.startedAt === null ? 'never' : moment(Date.parse(outcome.startedAt))],
      [
        'finished',
        `${moment(Date.parse(outcome.finishedAt))}, after ${span(outcome.durationSeconds * 1000)}`,
      ],
      ['polls', number(outcome.polls)],
      ['items', `${number(outcome.items)} in ${counted(outcome.pages, 'page')}`],
      ['spent', outcome.usageUsd === null ? 'not told by the server' : money(outcome.usageUsd)],
      ...outcome.warnings.map((text): [string, string] => ['warning', cleanText(text, 500)]),
      ['results', outcome.destination === null ? 'none' : cleanText(outcome.destination, 500)],
    );
  } else if (attempt !== null) rows.push(...attemptRows(attempt, now));
  return rows.map(([name, text]) => `${name.padEnd(10)} ${text}`.trimEnd());
}

function stateOf({ attempt, jobState }: ScrapeStatus): string {
  if (attempt === null) return `submitted, no worker has looked at it yet (${jobState})`;
  switch (attempt.phase) {
    case 'queued':
      return 'waits for its start';
    case 'starting':
      return attempt.intentAt === null ? 'waits for its start' : 'the start call is under way';
    case 'running':
      return `running (${cleanText(attempt.status ?? 'status not known yet', 40)})`;
    case 'aborting':
      return `being aborted (${attempt.abort ?? 'asked'})`;
    case 'reading':
      return 'the run has ended, its items are being read';
    case 'decided':
      return 'being settled';
    case 'done':
      return 'settled; its outcome is not to be found';
    default:
      return attempt.phase satisfies never;
  }
}

function attemptRows(attempt: Attempt, now: number): [string, string][] {
  const at = (ms: number | null, name: string): [string, string][] =>
    ms === null ? [] : [[name, `${moment(ms)}, ${span(now - ms)} ago`]];
  const { spec, deadlineAt } = attempt;
  return [
    ...(spec === null ? [] : [['tool', `${spec.server} ${spec.tool}`] as [string, string]]),
    ['attempt', number(attempt.n)],
    ...(attempt.runId === null ? [] : [['run', cleanText(attempt.runId, 80)] as [string, string]]),
    ...at(attempt.submittedAt, 'submitted'),
    ...at(attempt.startedAt, 'started'),
    ...at(attempt.endedAt, 'ended'),
    ...at(attempt.cancelledAt, 'cancelled'),
    ...(deadlineAt !== null && attempt.endedAt === null
      ? [['deadline', `${moment(deadlineAt)}, in ${span(deadlineAt - now)}`] as [string, string]]
      : []),
    ['polls', number(attempt.polls)],
    ['items', `${number(attempt.items)} in ${counted(attempt.pages, 'page')} written`],
    ...attempt.warnings.map((text): [string, string] => ['warning', cleanText(text, 500)]),
  ];
}
