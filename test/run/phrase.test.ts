import { describe, expect, it } from 'vitest';
import { count, duration, kept, plain, quoted, usd } from '../../src/run/phrase.js';

it.each([
  [-5, '0s'],
  [0, '0s'],
  [499, '0s'],
  [59_499, '59s'],
  [59_500, '1m'],
  [90_000, '1m30s'],
  [3_600_000, '1h'],
  [3_661_000, '1h1m'],
  [86_400_000 + 3_661_000, '1d1h'],
])('%i ms are %s', (ms, words) => {
  expect(duration(ms)).toBe(words);
});

it.each([
  [0, '$0'],
  [0.00421, '$0.00421'],
  [0.12345, '$0.123'],
  [1.5, '$1.50'],
  [1234.567, '$1234.57'],
])('%f dollars are %s', (value, words) => {
  expect(usd(value)).toBe(words);
});

it('counts and keeps in words', () => {
  expect([count(0, 'item'), count(1, 'item'), count(2, 'page')]).toEqual(['0 items', '1 item', '2 pages']);
  expect([kept(0), kept(1), kept(2)]).toEqual([
    'it had no items.',
    'its 1 item was kept.',
    'its 2 items were kept.',
  ]);
});

it.each([
  [null, ''],
  ['', ''],
  ['Blocked by the site...  ', ' It said: "Blocked by the site".'],
  ['said "no"', ' It said: "said \'no\'".'],
])('quotes %j', (text, words) => {
  expect(quoted(text)).toBe(words);
});

describe('plain', () => {
  it.each([
    ['OUTPUT', 'OUTPUT'],
    ['a/../b', 'a/../b'],
    ['\u001b[2Jx\ny\0z', '[2Jxyz'],
    ['\u202egnp.exe\u2028\u009b31m\ud800', 'gnp.exe31m'],
  ])('%j', (name, words) => {
    expect(plain(name)).toBe(words);
  });

  it('is bounded and cuts no character in two', () => {
    expect([...plain('😀'.repeat(10_000))]).toHaveLength(80);
    expect(plain('😀'.repeat(10_000))).toMatch(/😀…$/u);
  });
});
