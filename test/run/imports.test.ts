import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const folder = new URL('../../src/run/', import.meta.url);
const files = readdirSync(folder);

/** Comments and texts taken out, so that a word in prose is no finding. */
function codeOf(file: string): string {
  return readFileSync(new URL(file, folder), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '');
}

it('there is a core to look at', () => {
  expect(files).toEqual(
    expect.arrayContaining(['attempt.ts', 'outcome.ts', 'pages.ts', 'poll.ts', 'start.ts']),
  );
});

it.each(files)('%s imports nothing of ours or of others but types (design B2)', (file) => {
  const code = codeOf(file);
  const statements = [...code.matchAll(/^\s*(?:import|export)\b[^;]*?\bfrom\s*'([^']+)'/gm)];
  const wrong = statements
    .filter(([text, from = '']) => !(/^\.\/[a-z]+\.js$/.test(from) || /^\s*import type\s/.test(text)))
    .map(([text]) => text.trim());
  expect(wrong).toEqual([]);
  expect(code).not.toMatch(/\bimport\s*\(|\brequire\s*\(|^\s*import\s*'/m);
  // Types come from the port and the scrape alone: no SDK, no queue, no built-in, not even as a type.
  const typesFrom = statements.map(([, from = '']) => from).filter((from) => !from.startsWith('./'));
  for (const from of typesFrom) expect(from).toMatch(/^\.\.\/(mcp\/port|scrape\/types)\.js$/);
});

it.each(files)('%s has no clock, no chance, no I/O of its own', (file) => {
  expect(codeOf(file)).not.toMatch(
    /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bprocess\.|\bsetTimeout\b|\bsetInterval\b|\bfetch\(|\bperformance\.|\bconsole\.|\bawait\b|\basync\b|\bPromise\b/,
  );
});
