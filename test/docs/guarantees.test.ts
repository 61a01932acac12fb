import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** Paths that a document in docs/ links to or names, from the root. */
function links(document: string): string[] {
  return [...read(document).matchAll(/\]\((?!https?:|#)([^)#]+)\)/g)].map(([, to = '']) => join('docs', to));
}

describe('docs/guarantees.md', () => {
  const sections = read('docs/guarantees.md').split(/^## /m).slice(1);

  it('has the twelve promises, each with what proves it', () => {
    expect(sections.map((section) => Number.parseInt(section, 10))).toEqual(
      [...Array(12).keys()].map((n) => n + 1),
    );
    for (const section of sections) expect(section).toMatch(/\]\(\.\.\/test\//);
  });

  it.each([...new Set(links('docs/guarantees.md'))])('%s is there', (path) => {
    expect(existsSync(join(root, path))).toBe(true);
  });

  const lines = sections.flatMap((section) => section.split('\n').filter((line) => line.startsWith('- [')));
  it.each(lines)('what this names stands in its file: %s', (line) => {
    const text = [...line.matchAll(/\]\(\.\.\/([^)]+)\)/g)].map(([, path = '']) => read(path)).join('\n');
    const names = [...line.replaceAll(/"[^"]*"(?=\])/g, '').matchAll(/"([^"]+)"/g)].map(
      ([, name = '']) => name,
    );
    for (const name of names) expect(text).toContain(name);
  });
});

describe('docs/security.md', () => {
  const text = read('docs/security.md');

  it('says of each direct dependency why it is there', () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    const explained = [...text.matchAll(/^\| `([@\w/.-]+)` \| .+ \| .+ \|$/gm)].map(([, name]) => name);
    const table = explained.slice(explained.indexOf('@modelcontextprotocol/sdk'));
    expect([...table].sort()).toEqual(Object.keys(dependencies).sort());
  });

  const named = [...text.matchAll(/`((?:src|test|workers)\/[\w./-]+\.ts)`/g)].map(([, path = '']) => path);
  it.each([...new Set([...named, ...links('docs/security.md')])])('%s is there', (path) => {
    expect(existsSync(join(root, path))).toBe(true);
  });
});
