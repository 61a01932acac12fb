const lineFeed = 10;

/**
 * Reads server-sent events from chunks of bytes and hands out the data of each message event. Lines are cut on bytes,
 * so a character split over two chunks stays whole and a line of megabytes is joined once, not once a chunk.
 */
export class EventReader {
  #pending: Buffer[] = [];
  #data: string[] = [];
  #type = '';
  readonly #onData: (data: string) => void;

  constructor(onData: (data: string) => void) {
    this.#onData = onData;
  }

  /** Calls `onData` for each event the chunk completes; what `onData` throws comes through. */
  push(chunk: Buffer): void {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(lineFeed, start);
      if (end === -1) break;
      this.#pending.push(chunk.subarray(start, end));
      const line = (this.#pending.length === 1 ? this.#pending[0] : Buffer.concat(this.#pending))?.toString();
      this.#pending = [];
      start = end + 1;
      this.#line(line ?? '');
    }
    if (start < chunk.length) this.#pending.push(chunk.subarray(start));
  }

  #line(raw: string): void {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    if (line === '') {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#type = value;
  }

  #dispatch(): void {
    const data = this.#data.length === 1 ? (this.#data[0] ?? '') : this.#data.join('\n');
    const isMessage = this.#type === '' || this.#type === 'message';
    this.#data = [];
    this.#type = '';
    if (isMessage && data !== '') this.#onData(data);
  }
}
