const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const written = /^(\d{1,10}(?:\.\d{1,6})?)\s?(s|m|h|d)$/;

/** Ten years: longer is a slip of the pen, and every sum of durations stays a safe integer. */
export const longestDurationMs = 3650 * unitMs.d;

/** How durations are written, for error messages. */
export const durationSyntax = 'a duration such as 30s, 15m, 6h or 7d, or seconds as a number';

/**
 * Milliseconds of a duration as users write it (design A2): `30s`, `15m`, `6h`, `7d`, or seconds as a number.
 * null when it is none of these, is negative, or exceeds ten years.
 */
export function parseDuration(value: unknown): number | null {
  let ms: number;
  if (typeof value === 'number') {
    ms = value * 1000;
  } else if (typeof value === 'string') {
    const match = written.exec(value.trim());
    if (match === null) return null;
    ms = Number(match[1]) * unitMs[match[2] as keyof typeof unitMs];
  } else {
    return null;
  }
  return ms >= 0 && ms <= longestDurationMs ? Math.round(ms) : null;
}

/** The shortest way to write a duration that `parseDuration` reads back to the same milliseconds. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm'] as const) {
    if (ms >= unitMs[unit] && ms % unitMs[unit] === 0) return `${ms / unitMs[unit]}${unit}`;
  }
  return `${ms / 1000}s`;
}

/** A guess at what was meant: `15 minuets` → `15m`; null when there is no number to start from. */
export function suggestDuration(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const match = /^\s*(\d{1,9}(?:\.\d{1,6})?)\s*([a-zA-Z]{0,20})\s*$/.exec(value);
  if (match === null) return null;
  const word = (match[2] ?? '').toLowerCase();
  if (word === '') return `${match[1]}s`;
  // "ms" and "mo…" look like minutes and are not.
  if (/^(ms|mil|mo)/.test(word)) return null;
  return /^[smhd]/.test(word) ? `${match[1]}${word[0]}` : null;
}
