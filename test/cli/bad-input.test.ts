import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Folder, places, yellowPages } from './setup.js';

/** Nothing listens there: a command that gets so far as to call a server has gone too far. */
const nowhere = 'http://127.0.0.1:9/';
let folder: Folder;

beforeAll(() => {
  folder = new Folder(
    { apify: { url: nowhere, token: 'x', tools: [yellowPages, places] } },
    { limits: { inputBytes: 1000 } },
  );
});
afterAll(() => folder.remove());

const job = (more: object) => JSON.stringify({ id: 'a', tool: yellowPages, input: {}, ...more });

describe('job files', () => {
  const cases: [string, string, RegExp][] = [
    ['a malformed line', `${job({})}\n{"id":"b"\n`, /jobs\.ndjson:2: job: expected JSON, found a mistake/],
    ['an unknown key', job({ prioritty: 1 }), /jobs\.ndjson:1: .*"prioritty".*"priority"/],
    ['a tool that is not allowed', job({ tool: 'some/thing' }), /jobs\.ndjson:1: tool: .*some\/thing/],
    ['a path in an id', job({ id: '../../etc/passwd' }), /jobs\.ndjson:1: id: expected letters/],
    ['a slip in a duration', job({ deadline: '15 minuets' }), /jobs\.ndjson:1: deadline: .*15m/],
    [
      'one id with two contents',
      `${job({})}\n${job({ input: { x: 1 } })}`,
      /jobs\.ndjson:2: id: "a".*line 1/,
    ],
    ['an input over the bound', job({ input: { x: 'y'.repeat(2000) } }), /jobs\.ndjson:1: input: .*1000/],
    ['an empty file', '\n\n', /^trawl: jobs\.ndjson: expected one job a line, found none/],
    ['terminal escapes', job({ '\u001b[2J': 1 }), /unknown key/],
  ];
  for (const command of ['run', 'submit', 'plan']) {
    it.each(cases)(`${command}: %s`, async (_name, content, message) => {
      folder.write('jobs.ndjson', content);
      const said = await folder.trawl(command, 'jobs.ndjson');
      expect(said.err).toMatch(message);
      expect(said).toMatchObject({ code: 2, out: '' });
      expect(said.err).not.toContain('\u001b');
    });
  }

  it('names the first twenty bad lines together, and counts the rest', async () => {
    folder.write(
      'jobs.ndjson',
      Array.from({ length: 30 }, (_, i) => job({ id: `j${i}`, speed: 1 })).join('\n'),
    );
    const { code, err } = await folder.trawl('run', 'jobs.ndjson');
    expect(code).toBe(2);
    expect(err.match(/^jobs\.ndjson:\d+: /gm)).toHaveLength(20);
    expect(err).toContain('jobs.ndjson: and 10 more\nNothing was submitted.');
  });

  it.each([
    ['missing.ndjson', 'no such file'],
    ['folder', 'a directory'],
  ])('%s is %s', async (name, found) => {
    mkdirSync(join(folder.path, 'folder'), { recursive: true });
    const { code, err } = await folder.trawl('plan', name);
    expect(err).toBe(`trawl: ${name}: expected a file of jobs, found ${found}\n`);
    expect(code).toBe(2);
  });

  it('takes CRLF and a byte order mark', async () => {
    folder.write('windows.ndjson', `\ufeff${job({})}\r\n${job({ id: 'b' })}\r\n`);
    const { code, out } = await folder.trawl('plan', 'windows.ndjson', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ scrapes: 2, batch: 'windows' });
  });
});

describe('usage', () => {
  const cases: [string[], RegExp][] = [
    [['frobnicate'], /trawl: unknown command 'frobnicate'/],
    [['statsu'], /Did you mean status/],
    [['run'], /trawl: missing required argument 'file'/],
    [['run', 'x', '--batch', '../x'], /--batch.*Expected letters/s],
    [['run', 'x', '--confirm-over', 'much'], /Expected US dollars/],
    [['status', '--nope'], /unknown option '--nope'/],
    [['export'], /required option '--batch <name>'/],
    [['cancel'], /Expected the ID of a scrape, or --batch NAME/],
    [['pause', 'apfy'], /no server "apfy".*\n.*Did you mean apify/],
    [['resume', 'apify/trudax/yellow'], /not on the allow-list.*\n.*apify\/trudax\/yellow-pages-us-scraper/],
    [['tools', 'other'], /no server "other"/],
    [['plan', 'x', '--config', 'none.yaml'], /none\.yaml.*\n*(.*\n)*.*servers:/],
    [['export', '--batch', 'nothing'], /There are no results of this batch/],
  ];
  it.each(cases)('%j', async (args, message) => {
    const said = await folder.trawl(...args);
    expect(said.err).toMatch(message);
    expect(said).toMatchObject({ code: 2, out: '' });
  });

  it('names a missing environment variable with the place that needs it', async () => {
    folder.write(
      'env.yaml',
      `servers:\n  apify:\n    token: "\${NO_SUCH_TOKEN}"\n    tools: [${yellowPages}]\n`,
    );
    const { code, err } = await folder.trawl('status', '--config', 'env.yaml');
    expect(err).toMatch(/env\.yaml:3: servers\.apify\.token: .*NO_SUCH_TOKEN/);
    expect(code).toBe(2);
  });
});

describe('help', () => {
  it('shows every command and the exit codes', async () => {
    const { code, out } = await folder.trawl('--help');
    expect(code).toBe(0);
    for (const name of [
      'run',
      'work',
      'submit',
      'plan',
      'status',
      'watch',
      'cancel',
      'retry',
      'pause',
      'resume',
      'export',
      'tools',
      'doctor',
      'sim',
    ]) {
      expect(out).toMatch(new RegExp(`^  ${name}\\b`, 'm'));
    }
    expect(out).toContain('4  interrupted or Redis lost');
  });

  it.each([
    'run',
    'work',
    'submit',
    'plan',
    'status',
    'watch',
    'cancel',
    'retry',
    'pause',
    'resume',
    'export',
    'tools',
  ])('%s has examples', async (name) => {
    const { code, out } = await folder.trawl(name, '--help');
    expect(code).toBe(0);
    expect(out).toContain(`Examples:\n  trawl ${name}`);
  });
});
