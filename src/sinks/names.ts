import { createHash } from 'node:crypto';
import { TrawlError } from '../errors.js';

const safeName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const recordNameBytes = 200;

/** Batch and id come validated; checked again here because they become path segments. Throws `job_invalid`. */
export function assertPathSegment(what: 'batch' | 'id', value: string): string {
  if (!safeName.test(value)) {
    throw new TrawlError(
      'job_invalid',
      `The ${what} ${JSON.stringify(value.slice(0, 60))} cannot name a directory`,
    );
  }
  return value;
}

/** `page-000000.ndjson[.gz]`: name order is page order up to a million pages. */
export function pageName(index: number, gzip: boolean): string {
  if (!Number.isSafeInteger(index) || index < 0 || index > 999_999) {
    throw new TrawlError('job_invalid', `There is no page ${index}`);
  }
  return `page-${String(index).padStart(6, '0')}.ndjson${gzip ? '.gz' : ''}`;
}

export const pagePattern = /^page-\d{6}\.ndjson(\.gz)?$/;

/**
 * File name of a record (design A5): the key percent-encoded outside `[A-Za-z0-9._-]` (leading dots too, so nothing is
 * hidden or climbs), then the extension of its content type, at most 200 bytes. The extension is always added and never
 * holds a dot, so two keys never share a name; a longer name is cut and ends in `~` and a digest (`~` is not otherwise used).
 */
export function recordName(key: string, contentType: string): string {
  const extension = `.${extensionOf(contentType)}`;
  const encoded = percentEncode(key);
  if (encoded.length + extension.length <= recordNameBytes) return encoded + extension;
  const digest = `~${createHash('sha256').update(key).digest('hex').slice(0, 24)}`;
  const head = encoded
    .slice(0, recordNameBytes - digest.length - extension.length)
    .replace(/%[0-9A-F]?$/, '');
  return head + digest + extension;
}

function percentEncode(key: string): string {
  // A lone % cannot come out of the encoding below, so the empty key has a name of its own.
  if (key === '') return '%';
  const leadingDots = /^\.*/.exec(key)?.[0].length ?? 0;
  // Bytes beyond this cannot reach the name; the digest is taken of the whole key.
  const body = Buffer.from(key.slice(leadingDots, recordNameBytes * 2), 'utf8');
  let out = '%2E'.repeat(Math.min(leadingDots, recordNameBytes));
  for (const byte of body) {
    const char = String.fromCharCode(byte);
    out += /[A-Za-z0-9._-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return out;
}

const extensions = new Map([
  ['application/json', 'json'],
  ['application/x-ndjson', 'ndjson'],
  ['application/jsonl', 'jsonl'],
  ['application/pdf', 'pdf'],
  ['application/xml', 'xml'],
  ['application/zip', 'zip'],
  ['application/gzip', 'gz'],
  ['application/javascript', 'js'],
  ['text/plain', 'txt'],
  ['text/html', 'html'],
  ['text/csv', 'csv'],
  ['text/xml', 'xml'],
  ['text/markdown', 'md'],
  ['text/javascript', 'js'],
  ['image/png', 'png'],
  ['image/jpeg', 'jpg'],
  ['image/webp', 'webp'],
  ['image/gif', 'gif'],
  ['image/svg+xml', 'svg'],
  ['video/mp4', 'mp4'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xlsx'],
]);

function extensionOf(contentType: string): string {
  const type = (contentType.slice(0, 200).split(';')[0] ?? '').trim().toLowerCase();
  const known = extensions.get(type);
  if (known) return known;
  if (type.endsWith('+json')) return 'json';
  return type.startsWith('text/') ? 'txt' : 'bin';
}
