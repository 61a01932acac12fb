// How times, numbers and sizes are written.

const numbers = new Intl.NumberFormat('en');

/** @param {number} value */
export function number(value) {
  return numbers.format(value);
}

/** @param {number} count @param {string} noun */
export function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** @param {number} ms */
export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 100) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 50 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** @param {number} usd */
export function money(usd) {
  return `$${usd < 1 ? usd.toFixed(3) : usd.toFixed(2)}`;
}

/** Hours, minutes, seconds; the day as well when it is not today's. @param {number} at @param {number} now */
export function clock(at, now) {
  const date = new Date(at);
  const time = date.toLocaleTimeString('en-GB');
  return date.toDateString() === new Date(now).toDateString()
    ? time
    : `${date.toLocaleDateString('en-CA')} ${time}`;
}

/** @param {number} at @param {number} now */
export function ago(at, now) {
  return `${span(now - at)} ago`;
}

/** Words of the program as people write them. @param {string} word */
export function plain(word) {
  return word.toLowerCase().replaceAll('_', ' ').replaceAll('-', ' ');
}

/**
 * Items as they are stored, with every character that cannot be seen, or turns the reading direction, written as `\u{…}`.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(
    /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}
