import { z } from 'zod';
import { logLevels, logModules } from '../log-levels.js';
import { faultyField, field } from '../scrape/field.js';
import { canonicalTool } from '../scrape/tool-name.js';
import * as f from './fields.js';
import { readCollectorUrl, readRedisUrl, readServerUrl } from './urls.js';

const second = 1000;
const hour = 3600 * second;
const day = 24 * hour;

/** Commas separate a list that came as text, as overrides do. */
function listOrText(value: unknown): unknown {
  return typeof value === 'string' ? value.split(',').map((part) => part.trim()) : value;
}

const hostAndPort = field('host:port', (value) => {
  const match =
    typeof value === 'string' ? /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]{1,253}):(\d{1,5})$/.exec(value) : null;
  if (match === null) return undefined;
  const port = Number(match[2]);
  return port >= 1 && port <= 65_535 ? { host: (match[1] ?? '').replace(/^\[|\]$/g, ''), port } : undefined;
});

const sentinel = z.strictObject({
  name: f.text('the name of the master group', 128, /^[!-~]+$/),
  hosts: z.preprocess(listOrText, z.array(hostAndPort).min(1).max(32)),
  username: f.text('text', 256).optional(),
  password: f.passwordText.optional(),
  passwordFile: f.pathValue.optional(),
});

const redis = z.strictObject({
  url: faultyField(readRedisUrl).prefault(''),
  urlFile: f.pathValue.optional(),
  username: f.text('text', 256).optional(),
  password: f.passwordText.optional(),
  passwordFile: f.pathValue.optional(),
  db: f.whole(0, 65_535).optional(),
  tls: f.flag.optional(),
  sentinel: sentinel.optional(),
});

const tool = z.strictObject({
  name: field('an Actor as user/name', (value) =>
    typeof value === 'string' ? (canonicalTool(value) ?? undefined) : undefined,
  ),
  deadline: f.duration(1, 30 * day).optional(),
  memory: f.memory.optional(),
  minItems: f.whole(0, 1_000_000_000).optional(),
  price: z
    .strictObject({
      start: f.decimal(0, 1_000_000).default(0),
      item: f.decimal(0, 1_000_000).default(0),
    })
    .optional(),
});

const toolEntry = z.preprocess((value) => (typeof value === 'string' ? { name: value } : value), tool);

const server = z.strictObject({
  profile: f.oneOf('apify').default('apify'),
  url: faultyField(readServerUrl).prefault('https://mcp.apify.com'),
  token: f.secretText.default(''),
  tokenFile: f.pathValue.optional(),
  via: f.oneOf('auto', 'direct').default('auto'),
  tools: z.preprocess(listOrText, z.array(toolEntry).min(1).max(1000)),
  limits: z
    .strictObject({
      runs: f.whole(1, 1_000_000).default(5),
      requestsPerSecond: f.decimal(0.01, 100_000).default(20),
      memoryMb: f.whole(128, 1_000_000_000).optional(),
    })
    .prefault({}),
});

const logLevel = f.oneOf(...logLevels);
const ofModules = Object.fromEntries(logModules.map((module) => [module, logLevel.optional()]));
const logLevelOfModules = ofModules as Record<(typeof logModules)[number], z.ZodOptional<typeof logLevel>>;

/** Every key of `trawl.yaml` with its bounds and default (design A3); unknown keys are problems. */
export const configSchema = z.strictObject({
  redis: redis.prefault({}),
  prefix: f
    .text(
      'letters, digits, "_", "-" and ".", with at most one {hash tag}',
      64,
      /^[\w.-]*(\{[\w.-]+\})?[\w.-]*$/,
    )
    .default('{trawl}'),
  servers: z.record(z.string(), server),
  start: z.strictObject({ timeout: f.duration(1, hour).default(300 * second) }).prefault({}),
  poll: z
    .strictObject({
      interval: f.duration(1, hour).default(30 * second),
      waitSecs: f.whole(0, 45).default(0),
    })
    .prefault({}),
  deadline: f.duration(1, 30 * day).default(hour),
  keep: z
    .strictObject({
      settled: f.duration(0, 3650 * day).default(7 * day),
      failed: f.duration(0, 3650 * day).default(30 * day),
      max: f.whole(0, 100_000_000).default(100_000),
    })
    .prefault({}),
  results: z
    .strictObject({
      sink: f.oneOf('file').default('file'),
      dir: f.pathValue.default('./results'),
      gzip: f.flag.default(false),
      pageBytes: f.whole(1024, 268_435_456).default(524_288),
    })
    .prefault({}),
  limits: z
    .strictObject({
      inputBytes: f.whole(2, 16_777_216).default(98_304),
      answerBytes: f.whole(16_384, 268_435_456).default(33_554_432),
    })
    .prefault({}),
  intake: z
    .strictObject({
      stream: f.flag.default(true),
      list: f.flag.default(true),
      backlog: f.whole(1, 100_000_000).default(100_000),
    })
    .prefault({}),
  http: z
    .strictObject({
      host: f.text('a host name or address', 253, /^[A-Za-z0-9._:-]+$/).default('127.0.0.1'),
      port: f.whole(0, 65_535).default(9464),
      token: f.secretText.optional(),
      tokenFile: f.pathValue.optional(),
      names: z
        .preprocess(listOrText, z.array(f.text('a host name', 253, /^[A-Za-z0-9._-]+$/)).max(100))
        .default([]),
      trustedProxies: z.preprocess(listOrText, z.array(f.addresses).max(100)).default([]),
    })
    .prefault({}),
  shutdown: z.strictObject({ grace: f.duration(0, hour).default(30 * second) }).prefault({}),
  retry: z.strictObject({ backoff: f.duration(0, hour).default(30 * second) }).prefault({}),
  brake: z
    .strictObject({
      window: f.whole(1, 1000).default(20),
      badRatio: f.decimal(0.01, 1).default(0.8),
      action: f.oneOf('hold', 'warn').default('hold'),
    })
    .prefault({}),
  traces: z
    .strictObject({
      endpoint: faultyField(readCollectorUrl).prefault(''),
      headers: f.headers.default(''),
      headersFile: f.pathValue.optional(),
      ratio: f.decimal(0, 1).default(1),
    })
    .prefault({}),
  log: z
    .strictObject({
      level: logLevel.default('info'),
      modules: z.strictObject(logLevelOfModules).prefault({}),
    })
    .prefault({}),
});

export type RawConfig = z.output<typeof configSchema>;

/** The schema of a mapping behind its defaults; null when it is not one. */
export function mappingSchema(schema: unknown): z.ZodObject | z.ZodRecord | null {
  let inner = schema;
  while (true) {
    if (inner instanceof z.ZodObject || inner instanceof z.ZodRecord) return inner;
    if (inner instanceof z.ZodPrefault || inner instanceof z.ZodDefault || inner instanceof z.ZodOptional) {
      inner = inner.def.innerType;
    } else if (inner instanceof z.ZodPipe) {
      inner = inner.def.out;
    } else {
      return null;
    }
  }
}

/** The schema at a path of keys and list places; undefined when the path leads nowhere. */
export function schemaAt(path: readonly (string | number)[]): unknown {
  let schema: unknown = configSchema;
  for (const part of path) {
    if (typeof part === 'number') {
      const list = listSchema(schema);
      if (list === null) return undefined;
      schema = list.element;
      continue;
    }
    const mapping = mappingSchema(schema);
    if (mapping === null) return undefined;
    schema = mapping instanceof z.ZodRecord ? mapping.valueType : mapping.shape[part];
  }
  return schema;
}

/** The schema of a list behind what prepares it; null when it is not one. */
export function listSchema(schema: unknown): z.ZodArray | null {
  const inner = schema instanceof z.ZodPipe ? schema.def.out : schema;
  return inner instanceof z.ZodArray ? inner : null;
}

/** The keys known in the mapping at a path; empty when any name may stand there. */
export function knownKeys(path: readonly (string | number)[]): string[] {
  const mapping = mappingSchema(schemaAt(path));
  return mapping instanceof z.ZodObject ? Object.keys(mapping.shape) : [];
}
