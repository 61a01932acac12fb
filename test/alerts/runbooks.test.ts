import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { alertsOf } from '../../grafana/src/generate.js';
import { createProgram } from '../../src/cli/main.js';
import { faultsOf, parsePromql } from './promql.js';
import { codeIn, queriesIn, readRunbook, runbookFolder } from './runbook.js';

const alerts = alertsOf();
const program = await createProgram();
const commands = new Map(program.commands.map((command) => [command.name(), command]));
const files = readdirSync(runbookFolder).filter((name) => name !== 'README.md');
const headings = [
  'What it means to users',
  'Likely causes',
  'How to check',
  'What to do',
  'When to ignore it',
];
const plain = { label: (name: string) => name.toUpperCase(), value: () => '1' };

/** What is wrong with a command line of ours, '' when nothing is. */
function commandFaults(line: string): string {
  const [name = '', ...rest] =
    line
      .replace(/^(\w+=\S+ )*trawl /, '')
      .split(' | ')[0]
      ?.split(/\s+/) ?? [];
  const command = commands.get(name);
  if (command === undefined) return `no command ${name}`;
  const known = new Set(command.options.flatMap(({ long, short }) => [long, short]));
  const unknown = rest.filter((word) => word.startsWith('-') && word !== '-' && !known.has(word));
  if (unknown.length > 0) return `${name} has no ${unknown.join(', ')}`;
  const given = rest.filter((word, index) => !word.startsWith('-') && !takesValue(command, rest[index - 1]));
  const most = command.registeredArguments.length;
  const least = command.registeredArguments.filter(({ required }) => required).length;
  return given.length > most || given.length < least ? `${line}: takes ${least} to ${most} arguments` : '';
}

function takesValue(command: NonNullable<ReturnType<typeof commands.get>>, flag = ''): boolean {
  return command.options.some(({ long, short, required }) => required && (long === flag || short === flag));
}

it('every alert has a runbook, and every runbook an alert', () => {
  expect(files.sort()).toEqual(alerts.map(({ name }) => `${name}.md`).sort());
  const index = readRunbook('README.md');
  for (const file of files) expect(index).toContain(`(${file})`);
});

describe.each(alerts.map((alert) => [alert.name, alert] as const))('%s', (name, alert) => {
  const text = readRunbook(`${name}.md`);

  it('says what it means, why, how to check, what to do, and when to ignore it', () => {
    expect(text.startsWith(`# ${name}\n\nSeverity: ${alert.severity}\n`)).toBe(true);
    expect([...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)).toEqual(headings);
  });

  it('names only commands and options that exist', () => {
    const lines = [alert.command(plain), ...codeIn(text).filter((each) => /^(\w+=\S+ )*trawl /.test(each))];
    expect(lines.length).toBeGreaterThan(1);
    expect(lines.map(commandFaults).filter((fault) => fault !== '')).toEqual([]);
  });

  it('asks only for metrics that exist', () => {
    for (const query of queriesIn(text)) {
      expect(parsePromql(query).selectors.length, query).toBeGreaterThan(0);
      expect(faultsOf(query), query).toBe('');
    }
  });

  it('refers only to alerts that exist', () => {
    const names = new Set(alerts.map((each) => each.name));
    for (const [mentioned] of text.matchAll(/\bTrawl[A-Z][A-Za-z]+/g)) expect(names).toContain(mentioned);
  });
});
