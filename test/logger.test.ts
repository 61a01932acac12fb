import { expect, test } from 'vitest';
import { childLogger, createLogger, type LoggerOptions } from '../src/logger.js';

function logged(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  return { logger: createLogger({ level: 'info', destination, ...options }), lines };
}

test('an event is one line of JSON with level, ISO time and message', () => {
  const { logger, lines } = logged();
  logger.info({ polls: 3 }, 'two\nlines');
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^[^\n]+\n$/);
  const entry = JSON.parse(lines[0] ?? '');
  expect(entry).toMatchObject({ level: 'info', polls: 3, msg: 'two\nlines' });
  expect(new Date(entry.time).toISOString()).toBe(entry.time);
});

test('levels hold, and can be changed while running', () => {
  const { logger, lines } = logged({ level: 'warn' });
  logger.info('no');
  logger.warn('yes');
  logger.level = 'debug';
  logger.debug('now');
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['yes', 'now']);
});

test('modules have levels of their own, named in their lines, and change together while running', () => {
  const { logger, lines } = logged({ level: 'warn', modules: { mcp: 'debug' } });
  const [mcp, redis] = [logger.module('mcp'), childLogger(logger, { server: 'apify' }).module('redis')];
  expect(logger.module('mcp')).toBe(mcp);
  mcp.debug('a');
  redis.info('no');
  logger.setLevels({ level: 'error', modules: { redis: 'info', http: 'trace' } });
  mcp.warn('no');
  redis.info('b');
  redis.child({ x: 1 }).info('c');
  logger.module('http').trace('d');
  logger.module('sink').warn('no');
  logger.warn('no');
  logger.error('e');
  const said = lines.map((line) => JSON.parse(line));
  expect(said.map(({ module, level, msg }) => [module, level, msg])).toEqual([
    ['mcp', 'debug', 'a'],
    ['redis', 'info', 'b'],
    ['redis', 'info', 'c'],
    ['http', 'trace', 'd'],
    [undefined, 'error', 'e'],
  ]);
});

test('a module hides secrets that were registered after it was made', () => {
  const { logger, lines } = logged();
  const mcp = logger.module('mcp');
  logger.registerSecret('canary-late');
  mcp.info('canary-late');
  expect(lines.join('')).not.toContain('canary');
});

test.each([false, true])('secrets go by key and by value, in children too (pretty: %s)', (pretty) => {
  const { logger, lines } = logged({ level: 'trace', pretty });
  const child = childLogger(logger, { server: 'apify' });
  logger.registerSecret('canary-"one"');
  child.registerSecret('canary/two');
  const cause = new Error('because of canary-"one"');
  child.info(
    { token: 'canary-3', headers: { authorization: 'Bearer canary-4' }, redis: { password: 'canary-5' } },
    'x',
  );
  child.error(
    { err: new Error('canary-"one" refused', { cause }), url: 'https://h/?t=canary%2Ftwo' },
    'canary/two',
  );
  logger.child({ note: 'canary/two' }).trace('y');
  expect(lines.length).toBeGreaterThanOrEqual(3);
  const all = lines.join('');
  expect(all).not.toContain('canary');
  expect(all.match(/\[secret\]/g)?.length).toBeGreaterThan(6);
});

test('two loggers share no secrets', () => {
  const [one, two] = [logged(), logged()];
  one.logger.registerSecret('something');
  two.logger.info('something');
  expect(two.lines[0]).toContain('something');
});

test('short values are not taken for secrets', () => {
  const { logger, lines } = logged();
  logger.registerSecret('');
  logger.registerSecret('in');
  logger.info('starting');
  expect(JSON.parse(lines[0] ?? '').msg).toBe('starting');
});

test('children name their scrape, run and server, cleaned and bounded', () => {
  const { logger, lines } = logged();
  childLogger(logger, { scrapeId: 'a\x1b[31m\nb', runId: 'r'.repeat(500), server: undefined }).info('x');
  const entry = JSON.parse(lines[0] ?? '');
  expect(entry.scrapeId).toBe('a b');
  expect(entry.runId).toHaveLength(128);
  expect(entry).not.toHaveProperty('server');
});

const hostile = 'x\x1b[2J\u202e\u009b1m\u2028\u{e0041}\x07';

test('JSON lines hold nothing a terminal acts on, and are still the same document', () => {
  const { logger, lines } = logged();
  logger.info({ message: hostile }, hostile);
  expect(lines[0]?.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ message: hostile, msg: hostile });
});

test('lines for people hold nothing a terminal acts on', () => {
  const { logger, lines } = logged({ pretty: true });
  logger.warn(
    { [`k${hostile}`]: hostile, list: [{ deep: hostile }], err: new Error(hostile) },
    `m${hostile}`,
  );
  const text = lines.join('').replaceAll('\n', '');
  expect(text).toContain('WARN');
  expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
});

test.each([false, true])('an overlong event is shortened (pretty: %s)', (pretty) => {
  const { logger, lines } = logged({ pretty });
  const many = Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`k${i}`, 'y'.repeat(5000)]));
  logger.info('x'.repeat(5_000_000));
  logger.info({ many }, 'much');
  for (const line of lines) expect(line.length).toBeLessThan(pretty ? 200_000 : 33_000);
  expect(lines.join('')).toContain('much');
});
