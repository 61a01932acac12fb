import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { longestJob, readIntakeJob } from '../../src/queue/intake-job.js';
import { canonicalJson } from '../../src/scrape/canonical.js';
import { digestOf, fromBullJob, isBatch, isId, jobKey, splitJobKey } from '../../src/scrape/identity.js';
import { type ParseResult, parseJob } from '../../src/scrape/parse.js';
import type { Scrape } from '../../src/scrape/types.js';
import { configOf, example, tools } from '../scrape/support.js';
import { mustBePlain, mustBeUnpolluted } from './classified.js';
import { hostileValue, mutate, mutations, nasty } from './hostile.js';
import { jobs, seed } from './size.js';

const config = configOf();
const seeds: unknown[] = [
  example,
  { tool: tools[0], input: {} },
  {
    tool: 'trudax--yellow-pages-us-scraper',
    input: { a: [1, { b: null }] },
    records: ['OUTPUT', 'a/b'],
    fields: ['x.y'],
  },
  {
    tool: 'apify~rag-web-browser',
    input: { query: 'x' },
    options: { memory: 1024, build: 'latest' },
    deadline: 60,
  },
  [],
  null,
];

/** A scrape that came out of anything is fit for keys, folders, arguments and JSON. */
function mustBeScrape(scrape: Scrape): void {
  expect(isId(scrape.id) && isBatch(scrape.batch)).toBe(true);
  expect(splitJobKey(jobKey(scrape.batch, scrape.id))).toEqual({ batch: scrape.batch, id: scrape.id });
  expect(Object.hasOwn(config.servers, scrape.server)).toBe(true);
  expect(tools).toContain(scrape.tool);
  const { deadlineMs, expiresInMs, priority, retries, minItems } = scrape;
  for (const number of [deadlineMs, expiresInMs ?? 1, priority, retries, minItems]) {
    expect(Number.isSafeInteger(number) && number >= 0).toBe(true);
  }
  expect(deadlineMs).toBeGreaterThan(0);
  expect(Buffer.byteLength(JSON.stringify(scrape.input))).toBeLessThanOrEqual(config.limits.inputBytes);
  expect(JSON.parse(canonicalJson(scrape.input))).toEqual(scrape.input);
  expect(digestOf(scrape.tool, scrape.input, scrape.server)).toMatch(/^[\w-]{22}$/);
  for (const name of [...scrape.fields, ...scrape.records]) expect(name).not.toMatch(/\p{Cc}/u);
}

function check(result: ParseResult): void {
  if (result.ok) {
    mustBeScrape(result.scrape);
    return;
  }
  expect(result.problems.length).toBeGreaterThan(0);
  for (const { field, message } of result.problems.slice(0, 50)) {
    mustBePlain(field.replaceAll(/apify_api_\w+/g, ''), 400, 'field');
    // What the producer wrote is quoted to him: a token he put into a wrong place is his own.
    mustBePlain(message.replaceAll(/apify_api_\w+/g, ''), 1_000, 'message');
  }
}

const documents = fc
  .record({
    base: fc.constantFrom(...seeds),
    changes: fc.oneof(fc.constant([]), mutations, mutations),
    replaced: fc.oneof({ arbitrary: fc.constant(undefined), weight: 12 }, hostileValue),
  })
  .map(({ base, changes, replaced }) => (replaced === undefined ? mutate(base, changes) : replaced));
const jobIds = fc.oneof(
  fc.constantFrom(
    '17',
    'repeat:abc:1',
    'default.a',
    'leads-2026-12-02.plumbers-austin',
    '.',
    '..',
    'a.',
    ...nasty,
  ),
  fc.string({ unit: 'binary' }),
);

it('mutated job documents are scrapes or refused in words, whichever way they come', {
  timeout: 120_000,
}, () => {
  let accepted = 0;
  const property = fc.property(documents, jobIds, fc.nat(100), (document, jobId, cut) => {
    const direct = parseJob(document, { config, source: 'file' });
    check(direct);
    if (direct.ok) accepted += 1;

    const named = fromBullJob({ jobId, data: document });
    if (named.ok) {
      expect(isId(named.id) && isBatch(named.batch)).toBe(true);
      check(parseJob(named.job, { config, source: 'bullmq' }));
    } else check(named);

    const text = JSON.stringify(document) ?? '';
    const sent = cut > 90 ? text.slice(0, Math.floor((text.length * cut) / 101)) : text;
    const entry = { ref: `1-${cut}`, text: sent, bytes: Buffer.byteLength(sent) };
    const taken = readIntakeJob(config, cut % 2 === 0 ? 'stream' : 'list', entry);
    if (taken.ok) mustBeScrape(taken.scrape);
    else mustBePlain(taken.reason.replaceAll(/apify_api_\w+/g, ''), 5_000, 'reason');
  });
  fc.assert(property, { numRuns: jobs, seed });
  expect(accepted).toBeGreaterThan(jobs / 10);
});

it.each([
  [null, 'no such field'],
  [longestJob(config) + 1, 'bytes'],
])('an entry of %s bytes is refused unread', (bytes, words) => {
  const taken = readIntakeJob(config, 'stream', { ref: '1-1', text: '{', bytes });
  expect(taken).toMatchObject({ ok: false, reason: expect.stringContaining(words) });
});

afterAll(mustBeUnpolluted);
