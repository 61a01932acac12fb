import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { errorCodes } from '../../src/errors.js';

test('docs/errors.md has a row for every code, with its exit code, and no other', () => {
  const text = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
  const rows = [...text.matchAll(/^\| `(\w+)` +\| (\d) +\| .+\|$/gm)];
  expect(Object.fromEntries(rows.map((row) => [row[1], Number(row[2])]))).toEqual(errorCodes);
});
