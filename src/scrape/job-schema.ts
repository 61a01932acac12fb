import { z } from 'zod';
import { describeType, quote } from './clean-text.js';
import { durationSyntax, formatDuration, parseDuration, suggestDuration } from './duration.js';
import { faultyField, field, isRunMemory } from './field.js';
import { batchSyntax, idSyntax, isBatch, isId } from './identity.js';

const day = 86_400_000;
const maxMetaBytes = 2048;
const maxRecords = 100;
const maxFields = 200;
const maxCount = 1_000_000_000;
const maxRetries = 20;

function whole(min: number, max: number) {
  return field(`a whole number from ${min} to ${max}`, (value) =>
    typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max ? value : undefined,
  );
}

function duration(maxMs: number) {
  return faultyField((value) => {
    const ms = parseDuration(value);
    if (ms !== null && ms > 0 && ms <= maxMs) return { value: ms };
    const guess = ms === null ? suggestDuration(value) : null;
    const bound = ms === null ? '' : `, above 0 and at most ${formatDuration(maxMs)}`;
    const advice = guess === null ? '' : `; did you mean "${guess}"?`;
    return { fault: `${durationSyntax}${bound}, found ${quote(value)}${advice}` };
  });
}

/** A list of distinct texts, each of which `fault` passes. */
function texts(max: number, fault: (text: string) => string | null) {
  return faultyField((value) => {
    if (!Array.isArray(value)) return { fault: `a list, found ${describeType(value)}` };
    if (value.length > max) return { fault: `at most ${max} entries, found ${value.length}` };
    const seen = new Set<string>();
    for (const entry of value as unknown[]) {
      if (typeof entry !== 'string') return { fault: `texts, found ${describeType(entry)} among them` };
      const wrong = fault(entry);
      if (wrong !== null) return { fault: wrong };
      if (seen.has(entry)) return { fault: `each entry once, found ${quote(entry)} twice` };
      seen.add(entry);
    }
    return { value: value as readonly string[] };
  });
}

/** The name of the record's file is the key percent-encoded, at most 200 bytes (design A5). */
function recordFault(key: string): string | null {
  if (key === '' || /\p{Cc}/u.test(key)) return `record keys without control characters, found ${quote(key)}`;
  let bytes = 0;
  for (const byte of Buffer.from(key.slice(0, 300), 'utf8')) {
    bytes += /[A-Za-z0-9._-]/.test(String.fromCharCode(byte)) ? 1 : 3;
  }
  return bytes > 200 ? `record keys of at most 200 bytes, percent-encoded, found ${quote(key, 40)}` : null;
}

function fieldFault(name: string): string | null {
  if (name === '' || name.length > 256 || /\p{Cc}/u.test(name)) {
    return `names of 1 to 256 characters, found ${quote(name)}`;
  }
  return name.includes(',') ? `names without a comma, one an entry, found ${quote(name)}` : null;
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const options = z.strictObject({
  maxItems: whole(1, maxCount).optional(),
  maxTotalChargeUsd: field('a number of US dollars above 0, at most 1000000', (value) =>
    typeof value === 'number' && value > 0 && value <= 1_000_000 ? value : undefined,
  ).optional(),
  timeout: duration(30 * day).optional(),
  memory: field('MB as a power of two from 128 to 32768', (value) =>
    typeof value === 'number' && isRunMemory(value) ? value : undefined,
  ).optional(),
  build: field('a build tag or number of letters, digits, ".", "_", "-"', (value) =>
    typeof value === 'string' && /^[\w.-]{1,64}$/.test(value) ? value : undefined,
  ).optional(),
});

/** A scrape job as producers write it (design A2). Defaults that depend on the configuration are filled in later. */
export const jobSchema = z.strictObject({
  id: field(idSyntax, (value) => (isId(value) ? value : undefined)).optional(),
  batch: field(batchSyntax, (value) => (isBatch(value) ? value : undefined)).optional(),
  server: field('the name of a configured server', (value) =>
    typeof value === 'string' ? value : undefined,
  ).optional(),
  tool: field('an Actor as user/name, or its MCP tool name', (value) =>
    typeof value === 'string' ? value : undefined,
  ),
  input: field('a mapping', (value) => (isMapping(value) ? value : undefined)),
  deadline: duration(30 * day).optional(),
  expiresIn: duration(365 * day).optional(),
  priority: whole(0, 7).default(3),
  retries: whole(0, maxRetries).default(0),
  minItems: whole(0, maxCount).optional(),
  onEmpty: field('"warn", "fail" or "retry"', (value) =>
    value === 'warn' || value === 'fail' || value === 'retry' ? value : undefined,
  ).default('warn'),
  options: options.prefault({}),
  fields: texts(maxFields, fieldFault).default([]),
  records: texts(maxRecords, recordFault).default([]),
  meta: faultyField((value) => {
    const bytes = Buffer.byteLength(JSON.stringify(value) ?? '');
    return bytes <= maxMetaBytes
      ? { value }
      : { fault: `at most ${maxMetaBytes} bytes of JSON, found ${bytes}` };
  }).default(null),
});

/** Keys known at a path of a job document, for the nearest one to a misspelt key. */
export function jobKeys(path: readonly PropertyKey[]): string[] {
  if (path.length === 0) return Object.keys(jobSchema.shape);
  return path[0] === 'options' ? Object.keys(options.shape) : [];
}
