import fc from 'fast-check';

/** Stands for a token in everything that is generated: it must come out nowhere. */
export const canary = 'apify_api_Canary0123456789fuzz';

export const nasty: readonly string[] = [
  '../../../etc/passwd',
  '..\\..\\windows',
  'a\0b',
  'one\ntwo\r\nthree',
  '\u001b[2J\u001b]0;title\u0007\u001b[31mred',
  '\u009b31m\u0085\u2028\u2029',
  '\u202egnp.exe\u200b\ufeff\u2066',
  '\ud800 alone \udc00',
  'аррle/сrаwlеr',
  '__proto__',
  'constructor',
  'toString',
  canary,
  `Bearer ${canary}`,
  'x'.repeat(10_240),
  '😀'.repeat(3_000),
  "Run with ID 'run00000000000001' not found.",
  'MCP error -32602: MCP error -32602: ',
  '```json{"a":',
  '%00%2e%2e%2f',
  'trawl_runs{tool="x"} 1\n# HELP',
  '',
];

const numbers = [0, -0, -1, 1.5, 1e308, -1e308, 2 ** 53, -(2 ** 53), 8.64e15 + 1, 5e-324, 46, 1e21];

/** One value of JSON that nobody expects where it stands. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(...nasty),
  fc.constantFrom<unknown>(...numbers),
  fc.constantFrom<unknown>(null, true, false, [], {}, [[[]]], [null], {
    toString: 1,
    valueOf: 'x',
    length: -1,
  }),
  fc
    .constant(null)
    .map(() => JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}')),
  fc.integer({ min: 2, max: 500 }).map(nested),
  fc.string({ unit: 'binary', maxLength: 40 }),
);

function nested(depth: number): unknown {
  return JSON.parse(`${'[{"a":'.repeat(depth)}1${'}]'.repeat(depth)}`);
}

export interface Mutation {
  readonly kind: 'drop' | 'rename' | 'retype' | 'replace' | 'wrap' | 'repeat' | 'add';
  readonly at: number;
  readonly value: unknown;
  readonly name: string;
}

export const mutations: fc.Arbitrary<Mutation[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('drop', 'rename', 'retype', 'replace', 'wrap', 'repeat', 'add'),
    at: fc.nat(10_000),
    value: hostileValue,
    name: fc.constantFrom('id', 'runId', 'status', 'items', 'text', ...nasty.slice(0, 12)),
  }) as fc.Arbitrary<Mutation>,
  { minLength: 0, maxLength: 4 },
);

type Place = { readonly parent: Record<string, unknown>; readonly key: string };

/** A copy of a document with the mutations in it, each at one of its places. */
export function mutate(document: unknown, changes: readonly Mutation[]): unknown {
  const root: Record<string, unknown> = { document: structuredClone(document) };
  for (const change of changes) {
    const places: Place[] = [];
    collect(root, places, 0);
    const place = places[change.at % places.length];
    if (place !== undefined) apply(place, change);
  }
  return root.document;
}

function collect(parent: unknown, into: Place[], depth: number): void {
  if (typeof parent !== 'object' || parent === null || depth > 12 || into.length > 400) return;
  for (const key of Object.keys(parent)) {
    into.push({ parent: parent as Record<string, unknown>, key });
    collect((parent as Record<string, unknown>)[key], into, depth + 1);
  }
}

function apply({ parent, key }: Place, { kind, value, name }: Mutation): void {
  const old = parent[key];
  switch (kind) {
    case 'drop':
      if (Array.isArray(parent)) parent.splice(Number(key), 1);
      else delete parent[key];
      return;
    case 'rename':
      delete parent[key];
      put(parent, Array.isArray(parent) ? key : name, old);
      return;
    case 'retype':
      put(parent, key, retyped(old));
      return;
    case 'replace':
      put(parent, key, value);
      return;
    case 'wrap':
      put(parent, key, [{ [name === '__proto__' ? 'x' : name]: old }]);
      return;
    case 'repeat':
      put(
        parent,
        key,
        Array.from({ length: 50 }, () => old),
      );
      return;
    case 'add':
      if (typeof old === 'object' && old !== null && !Array.isArray(old))
        put(old as Place['parent'], name, value);
      else put(parent, key, value);
      return;
    default:
      kind satisfies never;
  }
}

/** As JSON.parse does it: `__proto__` becomes a key like any other. */
function put(parent: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(parent, key, { value, enumerable: true, writable: true, configurable: true });
}

function retyped(value: unknown): unknown {
  switch (typeof value) {
    case 'string':
      return Number.isNaN(Number(value)) ? value.length : Number(value);
    case 'number':
      return String(value);
    case 'boolean':
      return value ? 'true' : 0;
    default:
      return JSON.stringify(value) ?? null;
  }
}

/** Nothing that moves a cursor, breaks a line, or reorders what is read. */
export const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
