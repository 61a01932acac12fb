/** How much of a text from outside is looked at; a megabyte of error text is not read to show 500 characters of it. */
const considered = 65_536;

/**
 * A text from outside made fit for logs, Redis and people: one line, no control, format or bidi characters, secrets
 * replaced, at most `max` characters. Secrets are replaced after the invisible characters are gone (a server may put
 * one inside a token) and before the cut (so that no half of a token is left at the end).
 */
export function cleanMessage(text: unknown, secrets: readonly string[] = [], max = 500): string {
  let line = textOf(text);
  const longestSecret = Math.max(0, ...secrets.map((secret) => secret.length * 3));
  const cut = line.length > considered;
  if (cut) line = line.slice(0, considered);
  line = line
    .replace(/\s+/gu, ' ')
    .replace(/[\p{Cc}\p{Cf}\p{Cs}]+/gu, '')
    .trim();
  if (cut) line = line.slice(0, Math.max(0, line.length - longestSecret));
  for (const secret of secrets) {
    if (secret.length < 4) continue;
    for (const form of new Set([secret, encodeURIComponent(secret)]))
      line = line.replaceAll(form, '[redacted]');
  }
  line = line.replace(/apify_api_\w+/g, '[redacted]').replace(/\bbearer [^\s"',;]+/gi, 'Bearer [redacted]');
  return line.length > max ? `${line.slice(0, max - 1).replace(/\p{Cs}$/u, '')}…` : line;
}

/** A mapping or list where a text belongs says nothing; turning one into text may throw (`{"toString": 1}`). */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value instanceof Error) return value.message;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}
