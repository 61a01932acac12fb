import { isIP } from 'node:net';
import { z } from 'zod';
import { durationSyntax, formatDuration, parseDuration, suggestDuration } from '../scrape/duration.js';
import { field, isRunMemory } from '../scrape/field.js';

/** Overrides and expanded variables are always text, so numbers are read from text too. */
function numberOf(value: unknown): number | null {
  if (typeof value === 'number') return value;
  if (typeof value === 'string' && /^-?\d{1,16}(\.\d{1,9})?$/.test(value.trim())) return Number(value);
  return null;
}

export function whole(min: number, max: number) {
  return field(`a whole number from ${min} to ${max}`, (value) => {
    const number = numberOf(value);
    return number !== null && Number.isInteger(number) && number >= min && number <= max ? number : undefined;
  });
}

export function decimal(min: number, max: number) {
  return field(`a number from ${min} to ${max}`, (value) => {
    const number = numberOf(value);
    return number !== null && number >= min && number <= max ? number : undefined;
  });
}

/** MB of an Actor run: what the platform takes. */
export const memory = field('MB as a power of two from 128 to 32768', (value) => {
  const number = numberOf(value);
  return number !== null && isRunMemory(number) ? number : undefined;
});

export const flag = field('true or false', (value) => {
  if (value === true || value === 'true') return true;
  if (value === false || value === 'false') return false;
  return undefined;
});

export function duration(minMs: number, maxMs: number) {
  const bounds = `${durationSyntax}, from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  return z.unknown().transform((value, context): number => {
    const numeric = numberOf(value);
    const ms = parseDuration(numeric ?? value);
    if (ms !== null && ms >= minMs && ms <= maxMs) return ms;
    const guess = ms === null ? suggestDuration(value) : null;
    context.addIssue({ code: 'custom', message: guess === null ? bounds : `${bounds} (${guess}?)` });
    return z.NEVER;
  });
}

/** An IP address, or all of a block of them. A block of every address would trust whoever asks. */
export const addresses = field(
  'an IP address or a block of them, such as 10.0.0.5 or 10.0.0.0/24',
  (value) => {
    const match = typeof value === 'string' ? /^([0-9A-Fa-f:.]{2,45})(?:\/(\d{1,3}))?$/.exec(value) : null;
    const version = isIP(match?.[1] ?? '');
    if (match === null || version === 0) return undefined;
    const bits = match[2] === undefined ? 1 : Number(match[2]);
    return bits >= 1 && bits <= (version === 4 ? 32 : 128) ? match[0] : undefined;
  },
);

export function oneOf<const T extends string>(...values: readonly T[]) {
  return field(values.map((value) => `"${value}"`).join(' or '), (value) =>
    values.find((known) => known === value),
  );
}

const control = /\p{Cc}/u;

/** Text of at most `max` characters without control characters. */
export function text(expected: string, max = 4096, pattern?: RegExp) {
  return field(expected, (value) => {
    if (typeof value !== 'string' || value.length > max || control.test(value)) return undefined;
    return pattern === undefined || pattern.test(value) ? value : undefined;
  });
}

/** What an HTTP header or a Redis command takes without surprises: visible ASCII. */
export const secretText = text('a secret of visible ASCII characters (numbers in quotes)', 8192, /^[!-~]*$/);
/** As in OTEL_EXPORTER_OTLP_HEADERS. */
export const headers = field('name=value,name=value with values percent-encoded', (value) => {
  if (typeof value !== 'string' || value.length > 8192) return undefined;
  if (!/^([\w-]{1,100}=[!-+\--~]*(,|$))*$/.test(value) || value.endsWith(',')) return undefined;
  return decodes(value) ? value : undefined;
});

function decodes(text: string): boolean {
  try {
    return !control.test(decodeURIComponent(text));
  } catch {
    return false;
  }
}

/** Redis passwords may hold anything printable. */
export const passwordText = text('text (numbers in quotes)', 8192);
export const pathValue = text('a path', 1024, /./);
