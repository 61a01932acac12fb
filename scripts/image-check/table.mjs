/** What was checked, what was found, and how long it took. */
export class Table {
  rows = [];

  get ok() {
    return this.rows.every(({ ok }) => ok);
  }

  add(what, ok, found) {
    this.rows.push({ what, ok, found: String(found).split('\n')[0].slice(0, 160) });
  }

  /** A step that throws ends the check; its own text is what was found. */
  async timed(what, step) {
    const startedAt = Date.now();
    const found = await step();
    this.add(what, true, `${found} (${((Date.now() - startedAt) / 1000).toFixed(0)} s)`);
    return found;
  }

  text() {
    const width = Math.max(...this.rows.map(({ what }) => what.length));
    const lines = this.rows.map(
      ({ what, ok, found }) => `${ok ? 'ok  ' : 'FAIL'}  ${what.padEnd(width)}  ${found}`,
    );
    return `${lines.join('\n')}\n${this.ok ? 'The image is as it should be.' : 'The image is not as it should be.'}\n`;
  }
}
