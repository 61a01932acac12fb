import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { createProgram } from '../src/cli/main.js';
import { knownKeys } from '../src/config/schema.js';
import { loadConfig } from '../src/config.js';
import { errorCodes } from '../src/errors.js';
import { createMetrics } from '../src/metrics/index.js';
import { jobKeys } from '../src/scrape/job-schema.js';
import { parseJob } from '../src/scrape/parse.js';
import { readJobs } from '../src/scrape/read-jobs.js';
import { outcomes } from '../src/scrape/types.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const readme = read('README.md');
const program = await createProgram();
const commands = new Map(program.commands.map((command) => [command.name(), command]));

/** Contents of the fenced blocks of a language. */
function blocks(language: string, text = readme): string[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .filter((match) => match[1] === language)
    .map((match) => match[2] ?? '');
}

const configOf = (text: string) => loadConfig({ text, env: { APIFY_TOKEN: 'token' }, cwd: root });

describe('commands', () => {
  const used = [...readme.matchAll(/\btrawl (?!on the PATH)([a-z]+(?:-[a-z]+)*)((?: [^`\n#;.]*)?)/g)].map(
    (match) => ({
      name: match[1] ?? '',
      rest: match[2] ?? '',
    }),
  );

  test('every one that the README names exists, and so do its options', () => {
    const unknown = used.flatMap(({ name, rest }) => {
      const command = commands.get(name);
      if (command === undefined) return [`trawl ${name}`];
      const known = command.options.flatMap((option) => [option.long, option.short]);
      const options = rest.match(/--[a-z-]+/g) ?? [];
      return options
        .filter((option) => option !== '--help' && !known.includes(option))
        .map((option) => `trawl ${name} ${option}`);
    });
    expect(unknown).toEqual([]);
  });

  test('every command is in the README', () => {
    const names = new Set(used.map(({ name }) => name));
    expect([...commands.keys()].filter((name) => name !== 'help' && !names.has(name))).toEqual([]);
  });

  test('npm scripts exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = [...readme.matchAll(/npm run ([\w:-]+)/g)].map((match) => match[1] ?? '');
    expect(named).toContain('demo');
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

describe('what can be copied', () => {
  test('trawl.yaml is a valid configuration, and the job fits it', () => {
    const [yaml] = blocks('yaml');
    const config = configOf(yaml ?? '');
    expect(config.warnings).toEqual([]);
    const [job] = blocks('json');
    expect(parseJob(JSON.parse(job ?? ''), { config, source: 'file' })).toMatchObject({ ok: true });
  });

  test('every job is valid', () => {
    const config = configOf(
      'servers: { apify: { token: x, tools: [compass/crawler-google-places, trudax/yellow-pages-us-scraper] } }',
    );
    const jobs = [
      ...blocks('json'),
      ...blocks('sh').flatMap((block) => block.match(/(?<=')\{"id".*\}(?=')/gm) ?? []),
    ];
    expect(jobs).toHaveLength(4);
    for (const job of jobs)
      expect(parseJob(JSON.parse(job), { config, source: 'file' })).toMatchObject({ ok: true });
  });

  test('the example in docs/configuration.md is valid', () => {
    for (const yaml of blocks('yaml', read('docs/configuration.md'))) configOf(yaml);
  });
});

describe('tables', () => {
  const column = (heading: string) => {
    const section = readme.slice(readme.indexOf(`\n## ${heading}\n`)).split(/\n## /)[1] ?? '';
    return [...section.matchAll(/^\| `?([^`|]+?)`? \|/gm)].map((match) => match[1] ?? '');
  };

  test('job keys', () => {
    expect(column('Jobs').slice(2)).toEqual(jobKeys([]));
  });

  test('outcomes', () => {
    expect(column('Outcomes').slice(2)).toEqual([...outcomes]);
  });

  test('configuration keys', () => {
    const keys = column('Configuration').slice(2);
    expect(keys.length).toBeGreaterThan(3);
    for (const key of keys) {
      const parts = key.split('.');
      expect(knownKeys(parts.slice(0, -1)), key).toContain(parts.at(-1));
    }
  });

  test('exit codes', () => {
    const rows = [...readme.matchAll(/^\| (\d) \|/gm)].map((match) => Number(match[1]));
    expect(rows).toEqual([0, 1, 2, 3, 4]);
    for (const code of Object.values(errorCodes)) expect(rows).toContain(code);
  });
});

describe.each([
  'README.md',
  'CHANGELOG.md',
  'docs/architecture.md',
  'docs/configuration.md',
  'docs/errors.md',
])('%s', (file) => {
  test('files that it links to or names exist', () => {
    const text = read(file);
    const links = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map((match) => match[1] ?? '');
    const local = links.filter((link) => !/^https?:/.test(link)).map((link) => join(dirname(file), link));
    const named = [...text.matchAll(/`((?:src|workers|test|docs|grafana)\/[\w./-]+)`/g)].map(
      (match) => match[1] ?? '',
    );
    expect([...local, ...named].filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

test('metrics that the README names are served', async () => {
  const servers = { apify: { tools: ['user/name'] } };
  const served = await createMetrics({ version: '0', servers, process: false }).text();
  const named = [...readme.matchAll(/`(trawl_\w+)/g)].map((match) => match[1] ?? '');
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((name) => !served.includes(`# TYPE ${name} `))).toEqual([]);
});

test('the job file of the demo is valid, and expects outcomes that exist', async () => {
  const tools = [
    'crawler-google-places',
    'yellow-pages-us-scraper',
    'rag-web-browser',
    'website-content-crawler',
  ];
  const owners = ['compass', 'trudax', 'apify', 'apify'];
  const names = tools.map((tool, index) => `${owners[index]}/${tool}`);
  const config = configOf(`servers: { apify: { token: x, tools: [${names.join(', ')}] } }`);
  const { scrapes, problems } = await readJobs(
    { path: join(root, 'scripts/demo/businesses.ndjson') },
    { config },
  );
  expect(problems).toEqual([]);
  expect(scrapes).toHaveLength(40);
  expect(new Set(scrapes.map(({ batch }) => batch))).toEqual(new Set(['businesses']));
  const metas = scrapes.flatMap(({ meta }) =>
    meta === null ? [] : [meta as { note: string; expect: string }],
  );
  expect(metas.filter(({ expect: expected }) => !outcomes.some((outcome) => outcome === expected))).toEqual(
    [],
  );
  for (const note of ['meant to be empty', 'meant to fail', 'meant to pass its deadline']) {
    expect(metas.map((meta) => meta.note)).toContain(note);
  }
});
