import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseJob } from '../../src/scrape/parse.js';
import { configOf, example, parse, parsed, problems, tools } from './support.js';

const least = { id: 'a', tool: tools[0], input: {} };

test("the design's example", () => {
  expect(parsed(example)).toEqual({
    ...{ id: 'plumbers-austin', batch: 'leads-2026-12-02', server: 'apify' },
    tool: 'compass/crawler-google-places',
    input: example.input,
    deadlineMs: 1_800_000,
    expiresInMs: 21_600_000,
    priority: 3,
    retries: 1,
    minItems: 1,
    onEmpty: 'warn',
    options: { maxItems: 500, maxTotalChargeUsd: 2.5, timeoutMs: 1_200_000, memory: 4096 },
    fields: ['title', 'phone'],
    records: ['OUTPUT'],
    meta: { row: 17 },
  });
});

test('defaults of the design, then of the configuration, then of the tool', () => {
  const defaults = { priority: 3, retries: 0, minItems: 1, onEmpty: 'warn', expiresInMs: null, meta: null };
  const bare = { ...defaults, batch: 'default', options: {}, fields: [], records: [], deadlineMs: 3_600_000 };
  expect(parsed(least)).toMatchObject(bare);
  const servers = {
    s: { token: 'abcdef', tools: ['a/b', { name: 'c/d', deadline: '10m', memory: 1024, minItems: 0 }] },
  };
  const config = configOf(servers, { deadline: '2h' });
  expect(parsed({ ...least, tool: 'a/b' }, { config })).toMatchObject({ deadlineMs: 7_200_000, options: {} });
  expect(parsed({ ...least, tool: 'c/d' }, { config })).toMatchObject({
    deadlineMs: 600_000,
    minItems: 0,
    options: { memory: 1024 },
  });
  const own = { ...least, tool: 'c/d', deadline: 5, minItems: 2, options: { memory: 256 } };
  expect(parsed(own, { config })).toMatchObject({ deadlineMs: 5000, minItems: 2, options: { memory: 256 } });
});

test('null for an optional key counts as not given', () => {
  const nulls = { expiresIn: null, server: null, options: { memory: null }, fields: null, meta: null };
  expect(parsed({ ...least, ...nulls })).toEqual(parsed(least));
});

test('the batch: --batch, then the job, then the default of the source', () => {
  const job = { ...least, batch: 'own' };
  expect(parsed(job, { batch: 'forced', defaultBatch: 'file' }).batch).toBe('forced');
  expect(parsed(job, { defaultBatch: 'file' }).batch).toBe('own');
  expect(parsed(least, { defaultBatch: 'file' }).batch).toBe('file');
});

test.each([
  'compass/crawler-google-places',
  'compass~crawler-google-places',
  'compass--crawler-google-places',
])('the tool may be written %s', (tool) =>
  expect(parsed({ ...least, tool }).tool).toBe('compass/crawler-google-places'),
);

const long = 'x'.repeat(10_000);
test.each<[string, object, string]>([
  [
    'an unknown key',
    { prioritty: 1 },
    'prioritty: unknown key "prioritty"; the nearest known one is "priority"',
  ],
  [
    'an unknown option',
    { options: { mem: 1 } },
    'options.mem: unknown key "mem"; the nearest known one is "memory"',
  ],
  [
    'a slip in a duration',
    { deadline: '15 minuets' },
    'deadline: expected a duration such as 30s, 15m, 6h or 7d, or seconds as a number, found "15 minuets"; did you mean "15m"?',
  ],
  [
    'a duration of nothing',
    { deadline: 0 },
    'deadline: expected a duration such as 30s, 15m, 6h or 7d, or seconds as a number, above 0 and at most 30d, found 0',
  ],
  ['a negative duration', { expiresIn: -5 }, 'found -5'],
  ['an endless duration', { expiresIn: '9999999999d' }, 'found "9999999999d"'],
  ['priority 10', { priority: 10 }, 'priority: expected a whole number from 0 to 7, found 10'],
  ['a priority as text', { priority: '3' }, 'priority: expected a whole number from 0 to 7, found "3"'],
  ['half a retry', { retries: 0.5 }, 'retries: expected a whole number'],
  ['onEmpty', { onEmpty: 'maybe' }, 'onEmpty: expected "warn", "fail" or "retry", found "maybe"'],
  ['a path in an id', { id: '../../etc/passwd' }, 'id: expected letters, digits'],
  ['an id ending in a dot', { id: 'a.' }, 'id: expected'],
  ['an id of digits', { id: '17' }, 'id: expected'],
  ['an id of 129 characters', { id: 'a'.repeat(129) }, 'id: expected'],
  ['an id with a line break', { id: 'a\nb' }, 'id: expected'],
  ['an id of look-alikes', { id: 'аdmin' }, 'id: expected'],
  ['an id of 10 KB', { id: long }, 'id: expected'],
  ['a batch with a dot', { batch: 'a.b' }, 'batch: expected'],
  ['a batch of digits', { batch: '2026' }, 'batch: expected'],
  [
    'an unknown server',
    { server: 'apfy' },
    'server: expected a configured server, found "apfy"; the nearest one is "apify"',
  ],
  ['a server from a prototype', { server: 'constructor' }, 'server: expected a configured server'],
  [
    'a tool that is not allowed',
    { tool: 'apify/instagram-scraper' },
    'tool: "apify/instagram-scraper" is not on the allow-list of server "apify"; add "- apify/instagram-scraper" under servers.apify.tools in trawl.yaml',
  ],
  ['a tool that is none', { tool: '../x/y' }, 'tool: expected an Actor as user/name'],
  ['a tool of 10 KB', { tool: `a/${long}` }, 'tool: expected an Actor'],
  [
    'a tool that is a number',
    { tool: 5 },
    'tool: expected an Actor as user/name, or its MCP tool name, found 5',
  ],
  [
    'no tool',
    { tool: undefined },
    'tool: expected an Actor as user/name, or its MCP tool name, found nothing',
  ],
  ['no input', { input: undefined }, 'input: expected a mapping, found nothing'],
  ['a list as input', { input: [] }, 'input: expected a mapping, found a list'],
  [
    'too large an input',
    { input: { x: 'é'.repeat(49_200) } },
    'input: expected at most 98304 bytes of JSON (limits.inputBytes), found 98408',
  ],
  ['a large meta', { meta: 'x'.repeat(2047) }, 'meta: expected at most 2048 bytes of JSON, found 2049'],
  [
    'a comma in a field',
    { fields: ['a,b'] },
    'fields: expected names without a comma, one an entry, found "a,b"',
  ],
  ['a field twice', { fields: ['a', 'a'] }, 'fields: expected each entry once, found "a" twice'],
  [
    '201 fields',
    { fields: Array.from({ length: 201 }, (_, i) => `f${i}`) },
    'fields: expected at most 200 entries, found 201',
  ],
  ['a field that is a number', { fields: [1] }, 'fields: expected texts, found a number among them'],
  ['records as text', { records: 'OUTPUT' }, 'records: expected a list, found text'],
  ['an empty record key', { records: [''] }, 'records: expected record keys'],
  [
    'a record key of 201 bytes',
    { records: ['é'.repeat(34)] },
    'records: expected record keys of at most 200 bytes',
  ],
  ['options as a list', { options: [] }, 'options: expected a mapping, found a list'],
  ['odd memory', { options: { memory: 1000 } }, 'options.memory: expected MB as a power of two'],
  [
    'a free run',
    { options: { maxTotalChargeUsd: 0 } },
    'options.maxTotalChargeUsd: expected a number of US dollars above 0',
  ],
  ['an odd build', { options: { build: '../x' } }, 'options.build: expected a build tag'],
  ['NUL in the input', { input: { a: ['x\0y'] } }, 'input.a[0]: contains a NUL character'],
  ['a number beyond JSON', { input: { a: Number.NaN } }, 'input.a: is a number that JSON cannot hold'],
  ['a date', { input: { a: new Date(0) } }, 'input.a: is not a plain object'],
  ['a function', { input: { a: () => 1 } }, 'input.a: is a function, which JSON cannot hold'],
  [
    '__proto__ in the input',
    { input: JSON.parse('{"a":{"__proto__":{"x":1}}}') },
    'input.a: holds a key "__proto__"',
  ],
])('%s is refused', (_name, change, expected) => {
  const found = problems({ ...least, ...change });
  expect(found).toEqual([expect.stringContaining(expected)]);
  expect(found[0]?.length).toBeLessThan(400);
});

test.each([null, undefined, 5, 'text', [], true])('%j is not a job', (raw) => {
  expect(problems(raw)).toEqual([expect.stringContaining('job: expected a mapping')]);
});

test('__proto__ as a key of the job is refused, and pollutes nothing', () => {
  expect(problems(JSON.parse('{"tool":"a/b","input":{},"__proto__":{"polluted":1}}'))).toEqual([
    'job: holds a key "__proto__", which is not allowed',
  ]);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

test('depth and cycles are bounded', () => {
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level += 1) deep = [deep];
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  for (const a of [deep, cycle]) {
    expect(problems({ ...least, input: { a } })).toEqual(['job: nests deeper than 64 levels']);
  }
});

test('a shared object that unfolds to billions of values is refused soon', () => {
  let wide: unknown = 'x';
  for (let level = 0; level < 40; level += 1) wide = [wide, wide];
  expect(problems({ ...least, input: { wide } })).toEqual(['job: holds more than 108304 values']);
});

test('objects that throw when looked at are a problem, not a crash', () => {
  const trap = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error('trap');
      },
    },
  );
  const getter = {
    get tool() {
      throw new Error('trap');
    },
  };
  for (const raw of [trap, getter, { ...least, input: trap }]) {
    expect(problems(raw)).toEqual(['job: expected plain JSON, found an object that throws']);
  }
});

test('messages carry no escapes and little foreign text', () => {
  const nasty = `\x1b[31mred\x1b]0;title\x07\u202e\u200b${long}`;
  const job = {
    [nasty]: 1,
    id: nasty,
    batch: nasty,
    tool: nasty,
    server: nasty,
    deadline: nasty,
    fields: [`${nasty},`],
    options: { [nasty]: 1 },
  };
  const found = problems({ ...job, input: {} });
  expect(found.length).toBeGreaterThan(6);
  for (const line of found) {
    expect(line).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(line.length).toBeLessThan(450);
  }
});

test('several servers: the job has to name one', () => {
  const server = { token: 'abcdef', tools: ['a/b'] };
  const config = configOf({ one: server, two: server });
  expect(problems({ ...least, tool: 'a/b' }, { config })).toEqual([
    'server: expected one of one, two, found nothing: several servers are configured',
  ]);
  expect(parsed({ ...least, tool: 'a/b', server: 'two' }, { config }).server).toBe('two');
});

test('options are refused where starts are direct, and memory above the cap of the server', () => {
  const direct = configOf({ s: { token: 'abcdef', via: 'direct', tools: [{ name: 'a/b', memory: 512 }] } });
  const job = { ...least, tool: 'a/b' };
  expect(parsed(job, { config: direct }).options).toEqual({});
  expect(problems({ ...job, options: { maxItems: 5 } }, { config: direct })).toEqual([
    expect.stringContaining('via: direct, which takes no options'),
  ]);
  const capped = configOf({ s: { token: 'abcdef', tools: ['a/b'], limits: { memoryMb: 1024 } } });
  expect(problems({ ...job, options: { memory: 2048 } }, { config: capped })).toEqual([
    'options.memory: expected at most 1024 (limits.memoryMb of server "s"), found 2048',
  ]);
});

test('property: parseJob never throws and what it accepts keeps the rules', () => {
  const config = configOf();
  const value = fc.oneof(
    fc.jsonValue(),
    fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true }),
    fc.string(),
  );
  const job = fc.record(
    {
      ...Object.fromEntries(Object.keys(example).map((key) => [key, value])),
      id: fc.oneof(fc.stringMatching(/^[\w.-]{0,20}$/), value),
      tool: fc.oneof(fc.constantFrom(...tools), value),
      input: fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), value),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof({ arbitrary: job, weight: 4 }, fc.anything()), (raw) => {
      const result = parseJob(raw, { config, source: 'list' });
      if (result.ok) {
        expect(result.scrape.id).toMatch(/^[A-Za-z0-9]([\w.-]*[\w-])?$/);
        expect(result.scrape.deadlineMs).toBeGreaterThan(0);
        expect(parse({ ...(raw as object), id: result.scrape.id }).ok).toBe(true);
      } else {
        expect(result.problems.length).toBeGreaterThan(0);
      }
    }),
    { numRuns: 600 },
  );
});
