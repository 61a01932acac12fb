import { distance } from 'fastest-levenshtein';
import { cleanText } from './clean-text.js';

/** The candidate closest to a misspelt word, however far; null when there are none. Only the first 64 characters count. */
export function nearest(word: string, candidates: Iterable<string>): string | null {
  const given = word.slice(0, 64).toLowerCase();
  let best: string | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const d = distance(given, candidate.toLowerCase().slice(0, 64));
    if (d < bestDistance) {
      best = candidate;
      bestDistance = d;
    }
  }
  return best;
}

/** `unknown key "prioritty"; the nearest known one is "priority"` (design A2, A3). */
export function unknownKey(key: string, known: Iterable<string>): string {
  const near = nearest(key, known);
  const said = `unknown key "${cleanText(key, 60)}"`;
  return near === null ? said : `${said}; the nearest known one is "${near}"`;
}
