import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const runbookFolder = fileURLToPath(new URL('../../docs/runbooks', import.meta.url));

export const readRunbook = (file: string): string => readFileSync(`${runbookFolder}/${file}`, 'utf8');

/** What stands in backticks in a runbook: commands, queries, names. */
export function codeIn(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, inside = '']) => inside);
}

/** The PromQL among it, with the placeholders SERVER and TOOL. */
export function queriesIn(text: string): string[] {
  return codeIn(text).filter((each) => /trawl[:_]\w|^up\{|process_cpu/.test(each));
}

/** A section of a runbook, '' when there is none of that heading. */
export function sectionOf(text: string, heading: string): string {
  const [, section = ''] = text.split(`## ${heading}\n`);
  return section.split('\n## ')[0] ?? '';
}
