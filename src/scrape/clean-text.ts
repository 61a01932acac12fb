/**
 * Controls, separators of lines and paragraphs, invisible and bidirectional marks, tags, lone surrogates: what could move the cursor of a terminal, reorder what is read, or break one line into two.
 */
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const blanks = /[\p{Zl}\p{Zp}\s]+/gu;

const esc = '\x1b';
const csi = `(?:${esc}\\[|\x9b)[0-?]*[ -/]*[@-~]`;
const osc = `${esc}\\][^\x07${esc}]*(?:\x07|${esc}\\\\)?`;
const escapeSequence = new RegExp(`${csi}|${osc}|${esc}[@-Z\\\\^_]`, 'g');

/**
 * Makes text from outside fit to be printed on one line: terminal escapes and invisible or reordering characters are
 * taken out, runs of line breaks, tabs and blanks become one blank, and no more than `max` characters stay (`…` marks
 * the cut). Anything that is not text is described by its type.
 */
export function cleanText(text: unknown, max = 200): string {
  if (typeof text !== 'string') return describeType(text);
  // Cut before the replacements, so that a text of 50 MB costs no more than a short one.
  const head = text.slice(0, max * 4 + 64);
  const cleaned = head.replace(escapeSequence, '').replace(blanks, ' ').replace(unsafe, '').trim();
  const characters = [...cleaned];
  if (characters.length <= max && head.length === text.length) return cleaned;
  return `${characters.slice(0, Math.max(0, max - 1)).join('')}…`;
}

/**
 * JSON, or lines of it, with what a terminal might act on written as `\uXXXX`: it stays the same document. JSON itself
 * escapes the controls below U+0020 alone.
 */
export function escapeInvisible(json: string): string {
  return json.replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** What kind of value it is, in the words of a configuration file: never its content. */
export function describeType(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'string':
      return value === '' ? 'empty text' : 'text';
    case 'number':
    case 'bigint':
      return 'a number';
    case 'boolean':
      return String(value);
    case 'object':
      return 'a mapping';
    default:
      return `a ${typeof value}`;
  }
}

/** `"value"` for a short quotation of foreign text in a message; other values by content when short, else by type. */
export function quote(value: unknown, max = 80): string {
  if (typeof value === 'string') return value === '' ? 'empty text' : `"${cleanText(value, max)}"`;
  if (typeof value === 'number') return String(value);
  return describeType(value);
}
