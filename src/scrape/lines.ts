/** One line of a file without its line break; null when it exceeded the bound and was dropped. */
export interface Line {
  /** From 1. */
  readonly number: number;
  readonly bytes: Buffer | null;
}

const newline = 0x0a;
const carriageReturn = 0x0d;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Splits a stream into lines (LF or CRLF, a leading byte order mark dropped) and never holds more than `maxBytes` of one:
 * a longer line is read past and comes as null. A last line without a line break counts, an empty one does not.
 */
export async function* splitLines(source: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Line> {
  let number = 1;
  let parts: Buffer[] = [];
  let length = 0;
  const take = (): Line => {
    let bytes: Buffer | null = length > maxBytes ? null : Buffer.concat(parts);
    if (bytes !== null && bytes.at(-1) === carriageReturn) bytes = bytes.subarray(0, -1);
    if (bytes !== null && number === 1 && bytes.subarray(0, 3).equals(byteOrderMark))
      bytes = bytes.subarray(3);
    const line = { number, bytes };
    number += 1;
    parts = [];
    length = 0;
    return line;
  };
  const add = (part: Buffer) => {
    length += part.length;
    if (length > maxBytes) parts = [];
    else parts.push(part);
  };
  for await (const chunk of source) {
    let start = 0;
    while (true) {
      const end = chunk.indexOf(newline, start);
      if (end < 0) break;
      add(chunk.subarray(start, end));
      yield take();
      start = end + 1;
    }
    if (start < chunk.length) add(chunk.subarray(start));
  }
  if (length > 0) yield take();
}
