/** What is printed in the place of a secret. */
export const secretMark = '[secret]';

/** Shorter ones would tear ordinary words apart, and protect nothing. */
const shortestSecret = 5;

export interface Scrubber {
  /** Adds a secret; too short ones are ignored. */
  register(secret: string): void;
  /** The text with each registered secret, also as it looks inside JSON or a URL, replaced by `[secret]`. */
  scrub(text: string): string;
}

/** Replaces secrets by value, wherever they turn up: in a server's message, in an address, in a stack. */
export function createScrubber(secrets: Iterable<string> = []): Scrubber {
  const forms = new Set<string>();
  let pattern: RegExp | null = null;
  const register = (secret: string) => {
    if (secret.length < shortestSecret) return;
    const before = forms.size;
    forms.add(secret);
    forms.add(JSON.stringify(secret).slice(1, -1));
    forms.add(encodeURIComponent(secret.replace(/\p{Cs}/gu, '')));
    if (forms.size === before) return;
    // Longest first, so that a secret that contains another one goes as a whole.
    const sorted = [...forms].sort((a, b) => b.length - a.length);
    pattern = new RegExp(sorted.map((form) => form.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g');
  };
  for (const secret of secrets) register(secret);
  return { register, scrub: (text) => (pattern === null ? text : text.replace(pattern, secretMark)) };
}
