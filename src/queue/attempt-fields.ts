import type { Attempt, Decision, RunSpec, Slice } from '../run/attempt.js';
import { phases } from '../run/attempt.js';

type Stored = Omit<Attempt, 'scrape' | 'jobId' | 'n' | 'phase' | 'submittedAt'>;
/** What a step changes. Only fields named here are written; null deletes. */
export type AttemptPatch = { readonly [Name in keyof Stored]?: Stored[Name] | null };

type Codec = { field: string; kind: 'int' | 'float' | 'text' | 'json' | 'slice' };

/** Short field names keep a hash in Redis' compact encoding: a parked scrape has to stay under 3 KB. */
const codecs: Record<keyof Required<AttemptPatch>, Codec> = {
  digest: { field: 'dg', kind: 'text' },
  spec: { field: 'sp', kind: 'json' },
  cancelledAt: { field: 'cx', kind: 'int' },
  intentAt: { field: 'it', kind: 'int' },
  ambiguousSince: { field: 'as', kind: 'int' },
  asked: { field: 'ak', kind: 'json' },
  startedAt: { field: 'sa', kind: 'int' },
  deadlineAt: { field: 'dl', kind: 'int' },
  runId: { field: 'rid', kind: 'text' },
  datasetId: { field: 'ds', kind: 'text' },
  storeId: { field: 'kv', kind: 'text' },
  status: { field: 'st', kind: 'text' },
  statusMessage: { field: 'sm', kind: 'text' },
  serverStartedAt: { field: 'ss', kind: 'int' },
  repliedAt: { field: 'ra', kind: 'int' },
  endedAt: { field: 'en', kind: 'int' },
  polls: { field: 'po', kind: 'int' },
  pollFailures: { field: 'pf', kind: 'int' },
  pollAt: { field: 'pa', kind: 'int' },
  looks: { field: 'lk', kind: 'text' },
  itemCount: { field: 'ic', kind: 'int' },
  usageUsd: { field: 'us', kind: 'float' },
  usageBefore: { field: 'ub', kind: 'float' },
  elsewhere: { field: 'el', kind: 'json' },
  abort: { field: 'ab', kind: 'text' },
  abortTries: { field: 'atr', kind: 'int' },
  slice: { field: 'sl', kind: 'slice' },
  pages: { field: 'pg', kind: 'int' },
  items: { field: 'itm', kind: 'int' },
  bytes: { field: 'by', kind: 'int' },
  reads: { field: 'rd', kind: 'int' },
  recordsDone: { field: 'rc', kind: 'int' },
  warnings: { field: 'wn', kind: 'json' },
  unknownSince: { field: 'uk', kind: 'int' },
  unknownTimes: { field: 'ut', kind: 'int' },
  faults: { field: 'ft', kind: 'int' },
  stallBase: { field: 'sb', kind: 'text' },
  decision: { field: 'dc', kind: 'json' },
};

function encode(value: unknown, kind: Codec['kind']): string {
  if (value === null || value === undefined) return '';
  switch (kind) {
    case 'int':
    case 'float':
    case 'text':
      return String(value);
    case 'json':
      return JSON.stringify(value);
    case 'slice': {
      const slice = value as Slice;
      return `${slice.index},${slice.offset},${slice.limit}`;
    }
    default:
      return kind satisfies never;
  }
}

/** Field, value, field, value … as the scripts take them. */
export function encodePatch(patch: AttemptPatch): string[] {
  return Object.entries(patch).flatMap(([name, value]) => {
    const codec = codecs[name as keyof AttemptPatch];
    return [codec.field, encode(value, codec.kind)];
  });
}

/** A hash as Redis gives it → the attempt; null when there is none (or only a cancel mark). */
export function decodeAttempt(scrape: string, hash: Record<string, string>): Attempt | null {
  if (hash.ph === undefined || hash.n === undefined) return null;
  const text = (name: keyof AttemptPatch) => hash[codecs[name].field] ?? null;
  const number = (name: keyof AttemptPatch) => {
    const value = text(name);
    return value === null ? null : Number(value);
  };
  const json = <T>(name: keyof AttemptPatch, absent: T): T => {
    const value = text(name);
    return value === null ? absent : (JSON.parse(value) as T);
  };
  return {
    scrape,
    jobId: hash.job ?? scrape,
    n: Number(hash.n),
    phase: phases[Number(hash.ph)] ?? 'done',
    submittedAt: Number(hash.at ?? 0),
    digest: hash.dg ?? '',
    spec: json<RunSpec | null>('spec', null),
    cancelledAt: number('cancelledAt'),
    intentAt: number('intentAt'),
    ambiguousSince: number('ambiguousSince'),
    asked: json<Attempt['asked']>('asked', null),
    startedAt: number('startedAt'),
    deadlineAt: number('deadlineAt'),
    runId: text('runId'),
    datasetId: text('datasetId'),
    storeId: text('storeId'),
    status: text('status'),
    statusMessage: text('statusMessage'),
    serverStartedAt: number('serverStartedAt'),
    repliedAt: number('repliedAt'),
    endedAt: number('endedAt'),
    polls: number('polls') ?? 0,
    pollFailures: number('pollFailures') ?? 0,
    pollAt: number('pollAt'),
    looks: text('looks'),
    itemCount: number('itemCount'),
    usageUsd: number('usageUsd'),
    usageBefore: number('usageBefore'),
    elsewhere: json<string[]>('elsewhere', []),
    abort: text('abort') as Attempt['abort'],
    abortTries: number('abortTries') ?? 0,
    slice: decodeSlice(text('slice')),
    pages: number('pages') ?? 0,
    items: number('items') ?? 0,
    bytes: number('bytes') ?? 0,
    reads: number('reads') ?? 0,
    recordsDone: number('recordsDone') ?? 0,
    warnings: json<string[]>('warnings', []),
    unknownSince: number('unknownSince'),
    unknownTimes: number('unknownTimes') ?? 0,
    faults: number('faults') ?? 0,
    stallBase: text('stallBase'),
    decision: json<Decision | null>('decision', null),
  };
}

/** An attempt that nothing has happened to, for a document about a job that never became one. */
export function blankAttempt(scrape: string, submittedAt: number): Attempt {
  const attempt = decodeAttempt(scrape, { n: '1', ph: '0', at: String(submittedAt) });
  if (attempt === null) throw new Error('an attempt with a number and a phase');
  return attempt;
}

function decodeSlice(value: string | null): Slice | null {
  const parts = value?.split(',').map(Number) ?? [];
  const [index, offset, limit] = parts;
  return index === undefined || offset === undefined || limit === undefined ? null : { index, offset, limit };
}

/** Field, value, field, value … as Lua gives a hash. */
export function fieldsOf(flat: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = Object.create(null);
  for (let index = 0; index + 1 < flat.length; index += 2) {
    fields[flat[index] as string] = flat[index + 1] as string;
  }
  return fields;
}

/** Fields that say where an attempt stands, without what only workers need (an input may be 96 KB). */
const glanced = [
  'spec',
  'cancelledAt',
  'startedAt',
  'deadlineAt',
  'runId',
  'status',
  'endedAt',
  'polls',
  'itemCount',
  'abort',
  'pages',
  'items',
  'bytes',
] as const satisfies readonly (keyof AttemptPatch)[];

export const glancedFields = ['n', 'ph', 'at', 'job', ...glanced.map((name) => codecs[name].field)];

/** The attempt as far as `glancedFields` tell; null when there is no hash. */
export function decodeGlance(scrape: string, values: readonly (string | null)[]): Attempt | null {
  const hash: Record<string, string> = Object.create(null);
  glancedFields.forEach((field, index) => {
    const value = values[index];
    if (value !== null && value !== undefined) hash[field] = value;
  });
  return decodeAttempt(scrape, hash);
}
