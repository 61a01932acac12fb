import type { BatchCounts } from '../../queue/status.js';
import { outcomeClass } from '../../run/outcome.js';
import type { Outcome } from '../../scrape/types.js';
import { counted, moment, money, number, span } from '../format.js';
import type { Colors } from '../output.js';

/**
 * Time until all is settled, at the pace since the first submission; null when nothing has been settled, or all.
 * A batch that stood still for a while goes faster than this says.
 */
export function timeLeft({ submitted, settled, since }: BatchCounts, now: number): number | null {
  if (since === null || settled === 0 || settled >= submitted) return null;
  return ((now - since) / settled) * (submitted - settled);
}

export function batchLines(batch: BatchCounts, now: number, colors: Colors): string[] {
  const left = timeLeft(batch, now);
  const rows: [string, string][] = [
    ['batch', colors.bold(batch.batch)],
    ['settled', `${number(batch.settled)} of ${number(batch.submitted)}`],
    ...Object.entries(batch.outcomes).map(([outcome, count]): [string, string] => [
      `  ${outcome}`,
      paintOutcome(outcome as Outcome, number(count), colors),
    ]),
    ['items', number(batch.items)],
    ['spent', batch.usageUsd === null ? 'not told by the server' : money(batch.usageUsd)],
    ...(batch.since === null ? [] : [['since', moment(batch.since)] as [string, string]]),
    ...(left === null ? [] : [['left', `about ${span(left)}, at the pace so far`] as [string, string]]),
    ...(batch.cancelledAt === null ? [] : [['cancelled', moment(batch.cancelledAt)] as [string, string]]),
  ];
  return rows.map(([name, text]) => `${name.padEnd(20)} ${text}`);
}

export function batchJson(batch: BatchCounts, now: number): unknown {
  const left = timeLeft(batch, now);
  return { ...batch, secondsLeft: left === null ? null : Math.round(left / 1000) };
}

export function paintOutcome(outcome: Outcome, text: string, colors: Colors): string {
  const verdict = outcomeClass(outcome);
  switch (verdict) {
    case 'ok':
      return colors.green(text);
    case 'warning':
      return colors.yellow(text);
    case 'failure':
      return colors.red(text);
    default:
      return verdict satisfies never;
  }
}

/** `12 of 40 settled, 2 failures` for a list. */
export function batchProblems(batch: BatchCounts): string {
  let failures = 0;
  let warnings = 0;
  for (const [outcome, count] of Object.entries(batch.outcomes)) {
    const verdict = outcomeClass(outcome as Outcome);
    if (verdict === 'failure') failures += count;
    if (verdict === 'warning') warnings += count;
  }
  const parts = [
    failures > 0 ? counted(failures, 'failure') : '',
    warnings > 0 ? counted(warnings, 'warning') : '',
  ].filter((text) => text !== '');
  return parts.join(', ') || '-';
}
