import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cleanText, quote } from '../../src/scrape/clean-text.js';
import {
  formatDuration,
  longestDurationMs,
  parseDuration,
  suggestDuration,
} from '../../src/scrape/duration.js';
import { unknownKey } from '../../src/scrape/nearest.js';
import { canonicalTool, mcpToolName, resolveTool } from '../../src/scrape/tool-name.js';

test.each<[unknown, number | null]>([
  ['30s', 30_000],
  ['15m', 900_000],
  ['6h', 21_600_000],
  ['7d', 604_800_000],
  ['1.5h', 5_400_000],
  ['0s', 0],
  [' 30 s ', 30_000],
  [90, 90_000],
  [0.5, 500],
  [0, 0],
  ['3650d', longestDurationMs],
  ['3651d', null],
  ['15 minuets', null],
  ['15 minutes', null],
  ['30', null],
  ['', null],
  ['s', null],
  ['-5s', null],
  ['1e9s', null],
  ['1h30m', null],
  ['30S', null],
  [-1, null],
  [Number.NaN, null],
  [Number.POSITIVE_INFINITY, null],
  [null, null],
  [['30s'], null],
])('the duration %j is %s ms', (value, ms) => expect(parseDuration(value)).toBe(ms));

test('property: durations survive being written and read', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: longestDurationMs }), (ms) => {
      expect(parseDuration(formatDuration(ms))).toBe(ms);
    }),
  );
});

test.each([
  ['15 minuets', '15m'],
  ['2 Hours', '2h'],
  ['30', '30s'],
  ['3days', '3d'],
  ['10 months', null],
  ['500ms', null],
  ['soon', null],
])('%s suggests %s', (text, suggestion) => expect(suggestDuration(text)).toBe(suggestion));

test.each([
  ['user/name', 'user/name'],
  ['user~name', 'user/name'],
  ['user--name', 'user/name'],
  ['a-dot-b--name', 'a.b/name'],
  ['user--na--me', 'user/na--me'],
  ['name', null],
  ['', null],
  ['/name', null],
  ['user/', null],
  ['user/name/more', null],
  ['../name', null],
  ['user/..', null],
  ['user/na me', null],
  ['user/name\n', null],
  ['üser/name', null],
])('the tool %j is %s', (raw, name) => expect(canonicalTool(raw)).toBe(name));

const longActor = `some.user/${'very-long-actor-name-'.repeat(4)}x`;
const longTool = `${`some-dot-user--${'very-long-actor-name-'.repeat(4)}`.slice(0, 59)}-${createHash('sha256').update(longActor).digest('hex').slice(0, 4)}`;

test.each([
  ['compass/crawler-google-places', 'compass--crawler-google-places'],
  ['a.b.c/name', 'a-dot-b-dot-c--name'],
  ['user/na.me', 'user--na.me'],
  [longActor, longTool],
])('the MCP tool name of %s', (actor, tool) => {
  expect(mcpToolName(actor)).toBe(tool);
  expect(tool.length).toBeLessThanOrEqual(64);
});

test('an MCP tool name is resolved against the allow-list, also where it could be read in two ways', () => {
  const allowed = [longActor, 'us--er/name', 'a.b/c', 'a-dot-b/d'];
  expect(resolveTool(longTool, allowed)).toBe(longActor);
  expect(resolveTool('us--er--name', allowed)).toBe('us--er/name');
  expect(resolveTool('a-dot-b--c', allowed)).toBe('a.b/c');
  expect(resolveTool('a-dot-b--d', allowed)).toBe('a-dot-b/d');
  expect(resolveTool('a.b~c', allowed)).toBe('a.b/c');
  expect(resolveTool('a.b/x', allowed)).toBeNull();
  expect(resolveTool('x'.repeat(100_000), allowed)).toBeNull();
});

test.each([
  ['plain text', 'plain text'],
  ['\x1b[31mred\x1b[0m', 'red'],
  ['\x1b]0;title\x07after', 'after'],
  ['\x1b]8;;http://x\x1b\\link', 'link'],
  ['\u009b2Jcleared', 'cleared'],
  ['two\r\nlines\tand tab', 'two lines and tab'],
  ['a\u2028b\u202ec\u200bd\ufeffe\0f', 'a bcd ef'],
  ['lone \ud800 surrogate', 'lone  surrogate'],
  ['cut \x1b[', 'cut ['],
  ['Grüße, 世界 🎣', 'Grüße, 世界 🎣'],
])('%j is cleaned', (text, cleaned) => expect(cleanText(text)).toBe(cleaned));

test('property: cleaned text is bounded and holds nothing a terminal acts on', () => {
  const nasty = fc.constantFrom(
    '\x1b',
    '[',
    ']',
    '\x07',
    '\u009b',
    '\u202e',
    '\n',
    'm',
    '\ud83c',
    '\udfa3',
    '🎣',
  );
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(nasty).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 30 }), (value, max) => {
      const cleaned = cleanText(value, max);
      expect(cleaned).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
      expect([...cleaned].length).toBeLessThanOrEqual(max);
    }),
  );
});

test('long text costs no more than short text, and says that it was cut', () => {
  const started = process.cpuUsage();
  expect(cleanText('x'.repeat(50_000_000), 10)).toBe('xxxxxxxxx…');
  expect(process.cpuUsage(started).user).toBeLessThan(1_000_000);
});

test('values that are not text are named by their type', () => {
  expect([5, null, undefined, [], {}, true, ''].map((value) => quote(value))).toEqual([
    '5',
    'null',
    'nothing',
    'a list',
    'a mapping',
    'true',
    'empty text',
  ]);
});

test('an unknown key of 10 KB is shortened', () => {
  expect(unknownKey('k'.repeat(10_000), ['key']).length).toBeLessThan(130);
});
