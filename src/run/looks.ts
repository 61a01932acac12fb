/** One look at a run: when (milliseconds since 1970), what the server said of it, how many items it counted then. */
export interface Look {
  readonly at: number;
  /** As the server says it; `UNANSWERED` when the call failed, `UNKNOWN` for a word we do not know. */
  readonly status: string;
  readonly items: number | null;
}

/** So many stay, the last ones: with the default interval half an hour, and at most 700 bytes of Redis a run. */
export const keptLooks = 60;

const letters = {
  READY: 'Q',
  RUNNING: 'R',
  SUCCEEDED: 'S',
  FAILED: 'F',
  'TIMING-OUT': 'I',
  'TIMED-OUT': 'T',
  ABORTING: 'G',
  ABORTED: 'A',
  UNANSWERED: 'X',
  UNKNOWN: 'U',
} as const;
const words = new Map<string, string>(Object.entries(letters).map(([word, letter]) => [letter, word]));

/** `<seconds since the one before, base 36>[status letter][.items, base 36]`; what did not change is left out. */
const entry = /^([0-9a-z]{1,10})([A-Z])?(?:\.([0-9a-z]{1,11}))?$/;

/**
 * Adds a look to the compact text that an attempt's hash keeps of them. It travels in the write that a poll makes anyway,
 * so that a timeline costs neither a command nor a key of its own while the run is under way.
 */
export function addLook(text: string | null, look: Look): string {
  return encode([...readLooks(text), look].slice(-keptLooks));
}

/** The looks in a text, oldest first, times to the second. What cannot be read ends the list: it is for people alone. */
export function readLooks(text: string | null): Look[] {
  const looks: Look[] = [];
  let seconds = 0;
  let status = 'UNKNOWN';
  let items: number | null = null;
  for (const part of text === null || text === '' ? [] : text.split(',')) {
    const [, since, letter, count] = entry.exec(part) ?? [];
    if (since === undefined) break;
    seconds += Number.parseInt(since, 36);
    if (letter !== undefined) status = words.get(letter) ?? 'UNKNOWN';
    if (count !== undefined) items = Number.parseInt(count, 36);
    looks.push({ at: seconds * 1000, status, items });
  }
  return looks.slice(-keptLooks);
}

function encode(looks: readonly Look[]): string {
  let seconds = 0;
  let before = '';
  let items: number | null = null;
  return looks
    .map((look) => {
      // The clocks of two workers may differ by a little.
      const at = Math.max(seconds, Math.round(look.at / 1000));
      const letter = Object.hasOwn(letters, look.status)
        ? letters[look.status as keyof typeof letters]
        : letters.UNKNOWN;
      const counted = look.items !== null && look.items !== items ? `.${look.items.toString(36)}` : '';
      const text = `${(at - seconds).toString(36)}${letter === before ? '' : letter}${counted}`;
      seconds = at;
      before = letter;
      items = look.items ?? items;
      return text;
    })
    .join(',');
}
