import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { configSchema, listSchema, mappingSchema } from '../../src/config/schema.js';
import { parseDuration } from '../../src/scrape/duration.js';

interface Row {
  readonly key: string;
  readonly type: string;
  readonly default: string;
  readonly meaning: string;
}

const text = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
const rows: Row[] = [...text.matchAll(/^\| `([\w.[\]]+)` \| (.+?) \| (.+?) \| (.+) \|$/gm)].map((match) => ({
  key: match[1] ?? '',
  type: match[2] ?? '',
  default: match[3] ?? '',
  meaning: match[4] ?? '',
}));
const none = '–';

/** Paths of every key that holds a value, written as in the document. */
function keysOf(schema: unknown, path: string): string[] {
  const mapping = mappingSchema(schema);
  if (mapping instanceof z.ZodRecord) return keysOf(mapping.valueType, `${path}.NAME`);
  if (mapping !== null) {
    return Object.entries(mapping.shape).flatMap(([key, inner]) =>
      keysOf(inner, path === '' ? key : `${path}.${key}`),
    );
  }
  const element = listSchema(schema)?.element;
  const inList = element === undefined ? null : mappingSchema(element);
  return inList === null ? [path] : [path, ...keysOf(element, `${path}[]`)];
}

/** The smallest raw configuration in which everything that is optional as a whole is there, with one key set. */
function rawWith(key: string, value: unknown): Record<string, unknown> {
  const sentinel = { name: 'main', hosts: ['host:26379'] };
  const tool = { name: 'user/name', price: {} };
  const raw = { redis: { sentinel }, servers: { NAME: { tools: [tool] } } } as Record<string, unknown>;
  const parts = key.replace('[]', '.0').split('.');
  let at = raw;
  for (const part of parts.slice(0, -1)) {
    at[part] ??= {};
    at = at[part] as Record<string, unknown>;
  }
  if (value !== undefined) at[parts.at(-1) as string] = value;
  return raw;
}

function valueAt(tree: unknown, key: string): unknown {
  return key
    .replace('[]', '.0')
    .split('.')
    .reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], tree);
}

const accepts = (key: string, value: unknown) => configSchema.safeParse(rawWith(key, value)).success;

test('docs/configuration.md has a row for every key, once, in the order of the schema', () => {
  expect(rows.map(({ key }) => key)).toEqual(keysOf(configSchema, ''));
});

describe.each(rows)('$key', ({ key, type, default: written }) => {
  test('the default is the real one', () => {
    const real = valueAt(configSchema.parse(rawWith(key, undefined)), key);
    if (written === none) {
      const given = ['redis.sentinel.name', 'redis.sentinel.hosts', 'servers.NAME.tools'];
      if (!given.includes(key) && !key.endsWith('[].name')) expect(real).toBeUndefined();
    } else {
      const stated = parse(written.replace(/^`|`$/g, ''));
      expect(real).toEqual(valueAt(configSchema.parse(rawWith(key, stated)), key));
    }
  });

  const bounds = /, (\S+) to (\S+)$/.exec(type);
  if (bounds !== null && !type.startsWith('list')) {
    test('the bounds are the real ones', () => {
      const [low, high] = bounds
        .slice(1)
        .map((bound) => (type.startsWith('duration') ? seconds(bound) : Number(bound)));
      const step = type.startsWith('number') || type.startsWith('US dollars') ? 0.001 : 1;
      expect([accepts(key, low), accepts(key, high)]).toEqual([true, true]);
      expect([accepts(key, Number(low) - step), accepts(key, Number(high) + step)]).toEqual([false, false]);
    });
  }

  const choices = [...type.matchAll(/`([\w-]+)`/g)].map((match) => match[1]);
  if (choices.length > 0 && !type.startsWith('list')) {
    test('the choices are the real ones', () => {
      expect(choices.filter((choice) => !accepts(key, choice))).toEqual([]);
      expect(accepts(key, 'another')).toBe(false);
      const result = configSchema.safeParse(rawWith(key, 'another'));
      const listed = [...(result.error?.issues[0]?.message ?? '').matchAll(/"([\w-]+)"/g)].map(
        (match) => match[1],
      );
      expect(choices).toEqual(listed);
    });
  }
});

function seconds(duration: string): number {
  return (parseDuration(duration) ?? Number.NaN) / 1000;
}
