import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../src/scrape/canonical.js';
import {
  derivedId,
  digestOf,
  fromBullJob,
  isBatch,
  isId,
  jobKey,
  splitJobKey,
} from '../../src/scrape/identity.js';
import { parseJob } from '../../src/scrape/parse.js';
import { configOf, tools } from './support.js';

test.each([
  ['a', true, true],
  ['A-b_c9', true, true],
  ['2026-12-02', true, true],
  ['a.b', true, false],
  ['a..b', true, false],
  ['a'.repeat(128), true, true],
  ['a'.repeat(129), false, false],
  ['', false, false],
  ['.', false, false],
  ['.a', false, false],
  ['a.', false, false],
  ['-a', false, false],
  ['_a', false, false],
  ['17', false, false],
  ['a:b', false, false],
  ['a/b', false, false],
  ['a\n', false, false],
  ['é', false, false],
])('"%s" is an id: %s, a batch: %s', (text, id, batch) => {
  expect([isId(text), isBatch(text)]).toEqual([id, batch]);
});

test('job keys', () => {
  expect(jobKey('leads', 'a.b')).toBe('leads.a.b');
  expect(splitJobKey('leads.a.b')).toEqual({ batch: 'leads', id: 'a.b' });
  for (const key of ['leads', '.a', 'leads.', '17.a', 'a:b.c']) expect(splitJobKey(key)).toBeNull();
});

test.each([
  ['plain', 'plumbers', {}, 'default', 'plumbers'],
  ['with its batch before it', 'leads.plumbers', { batch: 'leads' }, 'leads', 'plumbers'],
  ['with a dot of its own', 'v1.2', {}, 'default', 'v1.2'],
  ['with the default batch', 'default.x', {}, 'default', 'x'],
  ['with an equal data.id', 'leads.x', { batch: 'leads', id: 'x' }, 'leads', 'x'],
  [
    'of FlowProducer',
    '5b8f0d6e-3c1a-4a4e-9d5c-7d1f0b2a9c11',
    {},
    'default',
    '5b8f0d6e-3c1a-4a4e-9d5c-7d1f0b2a9c11',
  ],
])('a jobId %s', (_name, jobId, data, batch, id) => {
  expect(fromBullJob({ jobId, data })).toEqual({ ok: true, batch, id, job: { ...data, batch, id } });
});

test.each([
  '17',
  'repeat:abc:1700000000000',
  'a:b',
  '',
  '.',
  'x'.repeat(500),
  'default.17',
  '../../x',
  'a\0b',
  'é',
])('the jobId %j gets a safe form, the same every time', (jobId) => {
  const named = fromBullJob({ jobId, data: {} });
  expect(named).toEqual(fromBullJob({ jobId, data: {} }));
  expect(named.ok && isId(named.id)).toBe(true);
  expect(named.ok && named.id).toMatch(/^job-(.*-)?[0-9a-f]{16}$/);
});

test('property: ids of different jobIds differ, and fit the rules', () => {
  const jobId = fc.oneof(
    fc.nat().map(String),
    fc.string(),
    fc.stringMatching(/^repeat:\w{1,8}:\d{1,13}$/),
    fc.stringMatching(/^[\w.:-]{1,12}$/),
  );
  fc.assert(
    fc.property(jobId, jobId, (a, b) => {
      const [one, two] = [fromBullJob({ jobId: a, data: {} }), fromBullJob({ jobId: b, data: {} })];
      if (!one.ok || !two.ok) throw new Error('refused');
      expect(isId(one.id)).toBe(true);
      const bare = (text: string) => text.replace(/^default\./, '');
      expect(one.id === two.id).toBe(bare(a) === bare(b));
    }),
  );
});

test.each([
  [
    'another data.id',
    'x',
    { id: 'y', batch: 'leads' },
    'id',
    'add the job with { jobId: "leads.y" } or leave "id" out',
  ],
  ['a data.id beside an id BullMQ made', '17', { id: 'y' }, 'id', '"y" differs from the jobId "17"'],
  ['a data.id that is none', 'x', { id: '../y' }, 'id', 'leave "id" out of the data'],
  ['a batch that is none', 'x', { batch: 'a.b' }, 'batch', 'expected letters'],
  ['data that is a text', 'x', 'data', 'job', 'expected a mapping, found text'],
  ['no data', 'x', null, 'job', 'expected a mapping, found null'],
])('%s is refused with advice', (_name, jobId, data, field, message) => {
  const named = fromBullJob({ jobId, data });
  expect(named).toEqual({ ok: false, problems: [{ field, message: expect.stringContaining(message) }] });
});

test('a BullMQ job goes on to parseJob', () => {
  const named = fromBullJob({ jobId: 'leads.x', data: { batch: 'leads', tool: tools[0], input: {} } });
  const result = named.ok && parseJob(named.job, { config: configOf(), source: 'bullmq' });
  expect(result).toMatchObject({ ok: true, scrape: { id: 'x', batch: 'leads' } });
});

const json = fc.dictionary(fc.string(), fc.jsonValue());

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).reverse();
  return Object.fromEntries(entries.map(([key, member]) => [key, reversed(member)]));
}

test('property: digests and derived ids do not depend on the order of keys', () => {
  fc.assert(
    fc.property(json, (input) => {
      expect(digestOf('a/b', reversed(input) as typeof input, 's')).toBe(digestOf('a/b', input, 's'));
      expect(derivedId(reversed(input), 1)).toBe(derivedId(input, 1));
      expect(JSON.parse(canonicalJson(input))).toEqual(JSON.parse(JSON.stringify(input)));
    }),
  );
});

test('digests tell tool, input and server apart', () => {
  const digests = [
    digestOf('a/b', {}, 's'),
    digestOf('a/c', {}, 's'),
    digestOf('a/b', {}, 't'),
    digestOf('a/b', { x: [1, 2] }, 's'),
    digestOf('a/b', { x: [2, 1] }, 's'),
    digestOf('a/b', { x: '1' }, 's'),
    digestOf('a/b', { x: 1 }, 's'),
  ];
  expect(new Set(digests).size).toBe(digests.length);
  for (const digest of digests) expect(digest).toMatch(/^[\w-]{22}$/);
});

test('derived ids count equal lines', () => {
  const ids = [1, 2, 3].map((count) => derivedId({ tool: 'a/b' }, count));
  expect(new Set(ids).size).toBe(3);
  expect(ids.every(isId)).toBe(true);
});
