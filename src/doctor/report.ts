import pc from 'picocolors';
import { ExitCode } from '../errors.js';
import type { Check } from './check.js';
import type { Section } from './run.js';

const marks: Record<Check['ok'], { plain: string; terminal: string }> = {
  ok: { plain: 'ok  ', terminal: pc.green('✓') },
  warn: { plain: 'warn', terminal: pc.yellow('!') },
  fail: { plain: 'FAIL', terminal: pc.red('✗') },
};

/** 2 when something fails, 3 when something is only worth a warning, else 0 (design A6). */
export function exitCodeOf(sections: readonly Section[]): number {
  const states = sections.flatMap((section) => section.checks.map((check) => check.ok));
  if (states.includes('fail')) return ExitCode.usage;
  return states.includes('warn') ? ExitCode.warnings : ExitCode.ok;
}

/** For people: one aligned line a check, what to do below each problem, a sum at the end. */
export function renderReport(sections: readonly Section[], terminal: boolean): string {
  const width =
    Math.max(...sections.flatMap((section) => section.checks.map((check) => check.name.length))) + 1;
  const indent = ' '.repeat((terminal ? 5 : 8) + width + 1);
  const lines: string[] = [];
  for (const { title, checks } of sections) {
    lines.push(terminal ? pc.bold(title) : title);
    for (const { name, ok, message, hint } of checks) {
      const mark = terminal ? marks[ok].terminal : marks[ok].plain;
      const [first = '', ...more] = message.split('\n');
      lines.push(`  ${mark}  ${name.padEnd(width)} ${first}`, ...more.map((line) => `${indent}${line}`));
      const arrow = terminal ? '→' : '->';
      const [advice, ...rest] = hint?.split('\n') ?? [];
      if (advice !== undefined)
        lines.push(`${indent}${arrow} ${advice}`, ...rest.map((line) => `${indent}   ${line}`));
    }
    lines.push('');
  }
  const text = [...lines, summary(sections)].map((line) => line.trimEnd()).join('\n');
  return `${text}\n`;
}

/** One document, for programs. */
export function reportJson(sections: readonly Section[]): string {
  const exitCode = exitCodeOf(sections);
  return `${JSON.stringify({ ok: exitCode === ExitCode.ok, exitCode, sections }, null, 2)}\n`;
}

function summary(sections: readonly Section[]): string {
  const states = sections.flatMap((section) => section.checks.map((check) => check.ok));
  const failed = states.filter((state) => state === 'fail').length;
  const warned = states.filter((state) => state === 'warn').length;
  if (failed === 0 && warned === 0) return 'Everything is in order.';
  const parts = [
    failed > 0 ? `${failed} to fix` : '',
    warned > 0 ? `${warned} worth a look` : '',
    `${states.length - failed - warned} in order`,
  ];
  return `${parts.filter((part) => part !== '').join(', ')}.`;
}
