import { appendFileSync, copyFileSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { splitLines } from '../../src/scrape/lines.js';
import { batchOfFile, formatProblems, jobsError, openJobs, readJobs } from '../../src/scrape/read-jobs.js';
import { configOf, tempFile, tools } from './support.js';

const config = configOf();
const line = (job: object) => JSON.stringify({ tool: tools[0], input: { q: 1 }, ...job });
const read = (content: string | Buffer, name = 'jobs.ndjson') =>
  readJobs({ path: tempFile(name, content) }, { config });

/** Temporary files of this test go to a folder of its own, so that it can see them all. */
function ownTmpdir(): string {
  const temp = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  vi.stubEnv('TMPDIR', temp);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(temp, { recursive: true, force: true });
  });
  return temp;
}

test('the example jobs: one has a priority that is not allowed, named with line and field', async () => {
  const path = fileURLToPath(new URL('fixtures/jobs.ndjson', import.meta.url));
  const result = await readJobs({ path }, { config });
  expect(result).toMatchObject({ problemCount: 1, duplicates: 0, scrapes: [] });
  expect(formatProblems('jobs.ndjson', result.problems)).toBe(
    'jobs.ndjson:10: priority: expected a whole number from 0 to 7, found 10',
  );
});

test('lines in order, with CRLF, a byte order mark, blank lines and no line break at the end', async () => {
  const result = await read(
    `\ufeff${line({ id: 'a' })}\r\n\r\n  \n${line({ id: 'b' })}\n\n${line({ id: 'c' })}`,
  );
  expect(result.problems).toEqual([]);
  expect(result.scrapes.map(({ id }) => id)).toEqual(['a', 'b', 'c']);
});

test('lines without an id get the same ones each time; equal lines get different ones', async () => {
  const content = `${line({})}\n${line({ input: { q: 2 } })}\n${line({})}\n{"input":{"q":1},"tool":"${tools[0]}"}\n`;
  const [one, two] = [await read(content), await read(content)];
  expect(one.scrapes).toEqual(two.scrapes);
  expect(new Set(one.scrapes.map(({ id }) => id)).size).toBe(4);
  expect(one.scrapes.map(({ id }) => id.replace(/^line-[0-9a-f]{20}/, 'line'))).toEqual([
    'line',
    'line',
    'line-2',
    'line-3',
  ]);
});

test('the batch is the base name of the file, unless a line or --batch says another', async () => {
  const content = `${line({ id: 'a' })}\n${line({ id: 'b', batch: 'own' })}\n`;
  const path = tempFile('Leads of May.ndjson', content);
  const batches = async (context: object) =>
    (await readJobs({ path }, { config, ...context })).scrapes.map(({ batch }) => batch);
  expect(await batches({})).toEqual(['Leads-of-May', 'own']);
  expect(await batches({ batch: 'forced' })).toEqual(['forced', 'forced']);
});

test.each([
  ['jobs.ndjson', 'jobs'],
  ['/a/b/leads.2026.jsonl', 'leads-2026'],
  ['..', /^batch-\w{8}$/],
  ['заявки.ndjson', /^batch-\w{8}$/],
  ['2026.json', 'batch-2026'],
  ['-x-.ndjson', 'x'],
  [`${'n'.repeat(250)}.ndjson`, 'n'.repeat(100)],
])('the batch of %s', (path, batch) => expect(batchOfFile(path)).toMatch(batch));

test('duplicates: equal ones are counted, different ones name both lines', async () => {
  const equal = await read(`${line({ id: 'a' })}\n{"id":"a","input":{"q":1},"tool":"${tools[0]}"}\n`);
  expect(equal).toMatchObject({ duplicates: 1, problemCount: 0 });
  expect(equal.scrapes.map(({ id }) => id)).toEqual(['a']);
  for (const change of [{ input: { q: 2 } }, { deadline: '5m' }]) {
    const different = await read(
      `${line({ id: 'b' })}\n${line({ id: 'a' })}\n\n${line({ id: 'a', ...change })}\n`,
    );
    expect(different.problems).toEqual([
      {
        line: 4,
        field: 'id',
        message: '"a" in batch "jobs" stands on line 2 already, with different content',
      },
    ]);
  }
});

test.each([
  ['malformed JSON', '{"tool": ', 'job', /^expected JSON, found a mistake: /],
  ['a pretty-printed list', '[', 'job', /one whole job a line, no list around them/],
  ['a list', '[{}]', 'job', /^expected a mapping such as .*, found a list$/],
  [
    'bytes that are not text',
    Buffer.from([0x22, 0xff, 0x22]),
    'job',
    /^expected UTF-8 text, found other bytes$/,
  ],
  [
    'a line over the bound',
    `"${'x'.repeat(700_000)}"`,
    'job',
    /^expected a line of at most 655360 bytes, found a longer one$/,
  ],
  [
    'deep nesting',
    `{"tool":"a/b","input":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
    'job',
    /^nests deeper than 64 levels$/,
  ],
  ['escapes', `{"\x1b[31mtool": ${'y'.repeat(500)}`, 'job', /^[\x20-\x7e…]{0,130}$/],
])('a line with %s is one problem of its line, and the others count', async (_name, bad, field, message) => {
  const content = Buffer.concat([
    Buffer.from(`${line({ id: 'a' })}\n`),
    Buffer.from(bad),
    Buffer.from(`\n${line({ id: 'b' })}`),
  ]);
  const { problems, problemCount } = await read(content);
  expect(problems).toEqual([{ line: 2, field, message: expect.stringMatching(message) }]);
  expect(problemCount).toBe(1);
});

test('all problems are counted, the first 20 listed together', async () => {
  const path = tempFile(
    'bad.ndjson',
    Array.from({ length: 15 }, (_, i) => line({ id: `a${i}`, priority: 9, retries: -1 })).join('\n'),
  );
  const jobs = await openJobs({ path }, { config });
  const report = await jobs.check();
  expect(report.problemCount).toBe(30);
  const error = jobsError(jobs.label, report);
  expect(error).toMatchObject({ code: 'job_invalid', exitCode: 2 });
  const lines = error.message.split('\n');
  expect(lines).toHaveLength(21);
  expect(lines[1]).toBe(`${path}:1: retries: expected a whole number from 0 to 20, found -1`);
  expect(lines[20]).toBe(`${path}: and 10 more`);
  await expect(jobs.scrapes().next()).rejects.toMatchObject({ code: 'job_invalid' });
});

test.each([
  ['a missing file', () => '/nowhere/jobs.ndjson', 'input_unreadable', 'found no such file'],
  ['a directory', () => tmpdir(), 'input_unreadable', 'found a directory'],
  ['an empty file', () => tempFile('e.ndjson', ''), 'input_empty', 'found none'],
  ['a blank file', () => tempFile('e.ndjson', '\ufeff\n \r\n'), 'input_empty', 'found none'],
  ['a path with NUL', () => 'a\0b', 'input_unreadable', 'expected a file of jobs'],
])('%s is refused', async (_name, path, code, message) => {
  await expect(readJobs({ path: path() }, { config })).rejects.toMatchObject({
    code,
    exitCode: 2,
    message: expect.stringContaining(message),
  });
});

test('stdin is spooled to a private file, read twice, and removed', async () => {
  const temp = ownTmpdir();
  const stream = Readable.from([
    `${line({ id: 'a' }).slice(0, 10)}`,
    `${line({ id: 'a' }).slice(10)}\n`,
    line({ id: 'b' }),
  ]);
  const jobs = await openJobs({ stream }, { config });
  const [folder] = readdirSync(temp);
  expect(statSync(join(temp, folder ?? '', 'jobs.ndjson')).mode & 0o777).toBe(0o600);
  expect(statSync(join(temp, folder ?? '')).mode & 0o777).toBe(0o700);
  expect(await jobs.check()).toMatchObject({ scrapes: 2, problemCount: 0 });
  const ids: string[] = [];
  for await (const { id, batch } of jobs.scrapes()) ids.push(`${batch}.${id}`);
  expect(ids).toEqual(['default.a', 'default.b']);
  await jobs.close();
  expect(readdirSync(temp)).toEqual([]);
});

test('a stream that fails leaves nothing behind', async () => {
  const temp = ownTmpdir();
  const stream = new Readable({
    read() {
      this.destroy(new Error('cut'));
    },
  });
  await expect(openJobs({ stream }, { config })).rejects.toMatchObject({ code: 'input_unreadable' });
  expect(readdirSync(temp)).toEqual([]);
});

test('a file that changes between check and submission is refused', async () => {
  const path = tempFile('grows.ndjson', `${line({ id: 'a' })}\n`);
  const jobs = await openJobs({ path }, { config });
  await jobs.check();
  appendFileSync(path, '{"half":');
  await expect(jobs.scrapes().next()).rejects.toMatchObject({
    code: 'input_unreadable',
    message: expect.stringContaining('changed'),
  });
});

test('a copy of a file resumes: same ids in the same batch', async () => {
  const one = tempFile('x.ndjson', `${line({})}\n${line({})}\n`);
  const two = tempFile('x.ndjson', '');
  copyFileSync(one, two);
  const keys = async (path: string) => (await readJobs({ path }, { config })).scrapes;
  expect(await keys(two)).toEqual(await keys(one));
});

test('5,000 lines stream in order', async () => {
  const jobs = await openJobs(
    {
      path: tempFile(
        'many.ndjson',
        Array.from({ length: 5_000 }, (_, i) => line({ id: `j${i}` })).join('\n'),
      ),
    },
    { config },
  );
  expect(await jobs.check()).toMatchObject({ scrapes: 5_000, problemCount: 0 });
  let count = 0;
  for await (const { id } of jobs.scrapes()) {
    if (id !== `j${count}`) throw new Error(`expected j${count}, found ${id}`);
    count += 1;
  }
  expect(count).toBe(5_000);
});

test('property: lines are the same however the bytes are cut', async () => {
  const piece = fc.constantFrom('a', 'bc', '\n', '\r\n', '\r', '', 'é', 'xxxxxxxxxxxx');
  await fc.assert(
    fc.asyncProperty(fc.array(piece), fc.array(fc.integer({ min: 1, max: 5 })), async (pieces, cuts) => {
      const bytes = Buffer.from(pieces.join(''));
      const chunks: Buffer[] = [];
      for (let at = 0, i = 0; at < bytes.length; i += 1) {
        const size = cuts[i % Math.max(1, cuts.length)] ?? 3;
        chunks.push(bytes.subarray(at, at + size));
        at += size;
      }
      const found: (string | null)[] = [];
      for await (const { bytes: part } of splitLines(Readable.from(chunks), 8))
        found.push(part?.toString() ?? null);
      const expected = bytes.toString().split('\n');
      if (expected.at(-1) === '') expected.pop();
      expect(found).toEqual(
        expected.map((text) => (Buffer.byteLength(text) > 8 ? null : text.replace(/\r$/, ''))),
      );
    }),
    { numRuns: 200 },
  );
});
