import { describe, expect, it } from 'vitest';
import { guardedPattern } from '../../src/mcp/guarded-pattern.js';
import { checkInput } from '../../src/mcp/input-check.js';
import { recordedTools } from './fake-server.js';

const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

describe('checkInput', () => {
  it.each([
    { name: 'a missing field', input: {}, problems: ["input: must have required property 'location'"] },
    { name: 'what fits', input: { location: 'x', searchKeyword: ['a'], maxPages: 2 }, problems: [] },
    {
      name: 'what the server coerces',
      input: { location: 7, searchKeyword: 'a', maxPages: '2' },
      problems: [],
    },
    {
      name: 'wrong types',
      input: { location: 'x', searchKeyword: [{}], maxPages: 'many' },
      problems: ['/searchKeyword/0: must be string', '/maxPages: must be integer'],
    },
  ])('$name', ({ input, problems }) => {
    const schema = recordedTools()[0]?.inputSchema as object;
    const before = structuredClone(input);
    expect(checkInput(schema, input)).toEqual(problems);
    expect(input).toEqual(before);
  });

  it.each([
    {
      name: 'a required field with a default',
      schema: object({ a: { type: 'string', default: 'x' } }, { required: ['a'] }),
    },
    {
      name: 'an unknown dialect',
      schema: { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' },
    },
    {
      name: 'unknown keywords and formats',
      schema: object({ a: { type: 'string', editor: 'textfield', format: 'moon', enumTitles: [1] } }),
    },
    {
      name: 'a reference to another document',
      schema: object({ a: { $ref: 'https://evil.example/x.json' } }),
    },
    { name: 'a schema that does not compile', schema: object({ a: { type: 'whatever' } }) },
    { name: 'a broken pattern', schema: object({ a: { pattern: '(' } }) },
    { name: 'required: true', schema: object({ a: { type: 'string', required: true } }) },
    { name: 'nullable without a type', schema: object({ a: { nullable: true } }) },
    {
      name: 'a schema of absurd size',
      schema: object(
        Object.fromEntries(Array.from({ length: 30_000 }, (_, n) => [`p${n}`, { type: 'array' }])),
      ),
    },
    { name: 'a schema of null', schema: { properties: null, required: [null, 7, {}] } },
  ])('$name lets the input pass', ({ schema }) => {
    expect(checkInput(schema, { a: 'y' })).toEqual([]);
  });

  it('says which key is too much, and which values are allowed', () => {
    const schema = object({ a: { enum: ['x', 'y'] } }, { additionalProperties: false });
    expect(checkInput(schema, { a: 'z', 'b\n\u001b[2J': 1 })).toEqual([
      'input: must NOT have additional properties: b [2J',
      '/a: must be equal to one of the allowed values: x, y',
    ]);
  });

  it('lists ten problems at most, each bounded', () => {
    const schema = object({}, { additionalProperties: { type: 'number' } });
    const input = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`${n}${'k'.repeat(9_000)}`, 'x']));
    const problems = checkInput(schema, input);
    expect(problems).toHaveLength(10);
    for (const problem of problems) expect(problem.length).toBeLessThanOrEqual(200);
  });

  it('tells two schemas with one $id apart', () => {
    const id = 'https://apify.com/mcp/x/schema.json';
    expect(checkInput({ ...object({ a: { type: 'number' } }), $id: id }, { a: 'x' })).toHaveLength(1);
    expect(checkInput({ ...object({ a: { type: 'string' } }), $id: id }, { a: 'x' })).toEqual([]);
  });

  it('is not fooled by names every object has', () => {
    const schema = object({}, { required: ['constructor', 'toString'] });
    expect(checkInput(schema, {})).toHaveLength(2);
    const input = JSON.parse('{"__proto__":{"constructor":1,"toString":1}}') as Record<string, unknown>;
    expect(checkInput(schema, input)).toHaveLength(2);
  });
});

describe('patterns from outside', () => {
  it.each([
    { pattern: '^https?://', text: 'https://a', match: true },
    { pattern: '^https?://', text: 'ftp://a', match: false },
    { pattern: '^[a-z]+$', text: 'abc', match: true },
    { pattern: '^[a-z]+$', text: 'abC', match: false },
    { pattern: '^(\\d{4})-(\\d{2})$', text: '2026-12', match: true },
    { pattern: '^(a|b)+c$', text: 'ababc', match: true },
    { pattern: '^(a|b)+c$', text: 'abab', match: false },
    { pattern: '^(?=x)x.*y.*$', text: 'xzy', match: true },
    { pattern: '\\-[^/]+', text: 'a-b', match: true },
  ])('$pattern on $text: $match, again and again', ({ pattern, text, match }) => {
    const guarded = guardedPattern(pattern, 'u');
    expect([guarded.test(text), guarded.test(text)]).toEqual([match, match]);
  });

  it.each(['^(a+)+$', '^(a|a)*$', '(.*a){20}', '^(([a-z])+.)+[A-Z]([a-z])+$', 'a*a*a*a*a*a*a*b'])(
    '%s cannot block the process',
    (pattern) => {
      const schema = object({ a: { type: 'array', items: { type: 'string', pattern } } });
      const began = performance.now();
      checkInput(schema, { a: Array(50).fill(`${'a'.repeat(5_000)}!`) });
      expect(performance.now() - began).toBeLessThan(10_000);
    },
  );
});
