import { beforeEach, describe, expect, it } from 'vitest';
import { type Sink, SinkHeldError, type SinkTarget } from '../../src/sinks/contract.js';
import { lines, outcome, page, target } from './fixtures.js';

/** What a sink's tests provide beside the sink: how to look at what readers see, and how to make it refuse. */
export interface SinkHarness {
  readonly sink: Sink;
  /** A second sink on the same place, as another process has. */
  another(): Sink;
  /** The items a reader finds for the scrape's present attempt, in order. */
  items(of: Pick<SinkTarget, 'batch' | 'id'>): Promise<string[]>;
  /** Number of records a reader finds. */
  records(of: Pick<SinkTarget, 'batch' | 'id'>): Promise<number>;
  /** Makes the destination refuse writes; the returned function makes it accept them again. */
  refuse(): Promise<() => Promise<void>>;
}

/** Keys as a hostile Actor may name them. Each has to end up as a record of its own, inside. */
export const hostileKeys = [
  'OUTPUT',
  'output',
  '',
  '.',
  '..',
  '../../escape',
  '/etc/passwd',
  'a/b',
  'a%2Fb',
  '.hidden',
  '...',
  'nul\0byte',
  'line\nbreak',
  '\u001b[31mred',
  '__proto__',
  'ünïcödé',
  'x'.repeat(10_240),
  `${'x'.repeat(10_240)}y`,
  '/'.repeat(300),
  '.'.repeat(300),
  'a b',
  'a+b',
  '~',
  '-rf',
];

/** Every sink keeps the contract in `src/sinks/contract.ts`; each runs these same tests. */
export function describeSink(name: string, makeHarness: () => Promise<SinkHarness>): void {
  describe(`sink contract: ${name}`, () => {
    let h: SinkHarness;
    let sink: Sink;
    beforeEach(async () => {
      h = await makeHarness();
      sink = h.sink;
    });

    it('shows the items of its pages in order, whatever order they were written in', async () => {
      const of = target('order');
      await sink.begin(of);
      for (const index of [2, 0, 1]) {
        const written = await sink.writePage(of, page(index));
        expect(written.existed).toBe(false);
        expect(written.bytes).toBeGreaterThan(0);
      }
      expect(await h.items(of)).toEqual([...lines(0), ...lines(1), ...lines(2)]);
    });

    it('leaves a page as it is when it is written again, from this process or another', async () => {
      const of = target('replay');
      await sink.begin(of);
      const first = await sink.writePage(of, page(0));
      expect(first).toMatchObject({ existed: false, lines: lines(0).length });
      const shorter = { ...page(0, 'other'), lines: lines(0, 'other').slice(1) };
      const again = { existed: true, bytes: first.bytes, lines: lines(0).length };
      expect(await sink.writePage(of, shorter)).toEqual(again);
      const other = h.another();
      await other.begin(of);
      expect(await other.writePage(of, shorter)).toEqual(again);
      expect(await h.items(of)).toEqual(lines(0));
    });

    it('tells what a page holds that somebody wrote, and that it is not there', async () => {
      const of = target('find');
      await sink.begin(of);
      expect(await sink.findPage(of, 0)).toBeNull();
      await sink.writePage(of, page(0));
      const bytes = lines(0).reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
      expect(await h.another().findPage(of, 0)).toEqual({ items: lines(0).length, bytes });
    });

    it('lets exactly one of many concurrent writers make each page', async () => {
      const of = target('race');
      const sinks = [sink, h.another(), h.another()];
      await Promise.all(sinks.map((each) => each.begin(of)));
      const written = await Promise.all(
        [0, 1, 2, 3].flatMap((index) => sinks.map((each) => each.writePage(of, page(index)))),
      );
      expect(written.filter(({ existed }) => !existed)).toHaveLength(4);
      expect(await h.items(of)).toEqual([0, 1, 2, 3].flatMap((index) => lines(index)));
    });

    it('begins by itself when a page comes first, as after a restart', async () => {
      const of = target('late-begin');
      await sink.writePage(of, page(0));
      await h.another().writePage(of, page(1));
      expect(await h.items(of)).toEqual([...lines(0), ...lines(1)]);
    });

    it('takes an empty page', async () => {
      const of = target('nothing');
      expect(await sink.writePage(of, { index: 0, offset: 0, lines: [] })).toMatchObject({ existed: false });
      expect(await h.items(of)).toEqual([]);
    });

    it('settles once: the first outcome of an attempt is returned ever after', async () => {
      const of = target('settle');
      await sink.begin(of);
      expect(await sink.find(of.batch, of.id)).toBeNull();
      const first = outcome(of, { message: 'The first.' });
      expect(await sink.settle(of, first)).toEqual(first);
      expect(await sink.settle(of, outcome(of, { outcome: 'errored' }))).toEqual(first);
      expect(await h.another().settle(of, outcome(of, { outcome: 'lost' }))).toEqual(first);
      expect(await h.another().find(of.batch, of.id)).toEqual({ outcome: first, digest: of.digest });
    });

    it('agrees on one outcome when several settle at once', async () => {
      const of = target('settle-race');
      const sinks = Array.from({ length: 8 }, () => h.another());
      const settled = await Promise.all(sinks.map((each, at) => each.settle(of, outcome(of, { polls: at }))));
      const found = await sink.find(of.batch, of.id);
      for (const document of settled) expect(document).toEqual(found?.outcome);
    });

    it('settles a scrape that never began (rejected, expired)', async () => {
      const of = target('rejected');
      await sink.settle(of, outcome(of, { outcome: 'rejected', items: 0, pages: 0 }));
      expect((await sink.find(of.batch, of.id))?.outcome.outcome).toBe('rejected');
    });

    it('makes room for the next attempt and keeps nothing of the earlier one in sight', async () => {
      const [first, second] = [target('again', 1), target('again', 2)];
      await sink.writePage(first, page(0, 'old'));
      await sink.writePage(first, page(1, 'old'));
      await sink.writeRecord(first, {
        key: 'OUTPUT',
        contentType: 'application/json',
        body: Buffer.from('{}'),
      });
      await sink.settle(first, outcome(first, { outcome: 'failed' }));
      await h.another().begin(second);
      expect(await h.items(second)).toEqual([]);
      expect(await h.records(second)).toBe(0);
      expect(await sink.find(second.batch, second.id)).toBeNull();
      await sink.begin(second);
      await sink.writePage(second, page(0, 'new'));
      await sink.begin(second);
      expect(await h.items(second)).toEqual(lines(0, 'new'));
      await sink.settle(second, outcome(second));
      expect((await sink.find(second.batch, second.id))?.outcome).toEqual(outcome(second));
      expect(await sink.lastAttempt(second.batch, second.id)).toBe(2);
    });

    it('lets nothing of an earlier attempt in that wakes up late', async () => {
      const [first, second] = [target('late', 1), target('late', 2)];
      await sink.writePage(first, page(0, 'old'));
      await h.another().begin(second);
      const tooLate = { code: 'attempt_superseded' };
      await expect(sink.writePage(first, page(1, 'old'))).rejects.toMatchObject(tooLate);
      await expect(sink.begin(first)).rejects.toMatchObject(tooLate);
      await expect(h.another().settle(first, outcome(first))).rejects.toMatchObject(tooLate);
      await expect(
        sink.writeRecord(first, { key: 'K', contentType: 'text/plain', body: Buffer.from('x') }),
      ).rejects.toMatchObject(tooLate);
      expect(await h.items(second)).toEqual([]);
      expect(await h.records(second)).toBe(0);
    });

    it('passes over attempts that never wrote, and they cannot begin afterwards', async () => {
      await sink.begin(target('skip', 4));
      expect(await sink.lastAttempt('leads', 'skip')).toBe(4);
      await expect(h.another().begin(target('skip', 3))).rejects.toMatchObject({
        code: 'attempt_superseded',
      });
    });

    it('returns the outcome of an attempt that was settled before the next began', async () => {
      const [first, second] = [target('settled-late', 1), target('settled-late', 2)];
      const durable = await sink.settle(first, outcome(first, { outcome: 'failed' }));
      await h.another().begin(second);
      expect(await sink.settle(first, outcome(first, { outcome: 'errored' }))).toEqual(durable);
    });

    it('keeps pages of an earlier attempt out while its writers race with the next', async () => {
      const [first, second] = [target('storm', 1), target('storm', 2)];
      await sink.begin(first);
      const late = Array.from({ length: 30 }, (_, index) => sink.writePage(first, page(index, 'old')));
      const others = [h.another(), h.another()];
      const begun = others.map(async (each, at) => {
        await each.begin(second);
        return each.writePage(second, page(at, 'new'));
      });
      await Promise.allSettled(late);
      await Promise.all(begun);
      expect(await h.items(second)).toEqual([...lines(0, 'new'), ...lines(1, 'new')]);
    });

    it('refuses an attempt that began with another input', async () => {
      await sink.begin(target('digest'));
      const other = { ...target('digest'), digest: 'd2' };
      await expect(sink.begin(other)).rejects.toMatchObject({ code: 'job_conflict' });
      await expect(sink.writePage(other, page(0))).rejects.toMatchObject({ code: 'job_conflict' });
    });

    it('keeps every record apart, whatever its key', async () => {
      const of = target('records');
      const write = (key: string, body: string) =>
        sink.writeRecord(of, { key, contentType: 'text/plain; charset=utf-8', body: Buffer.from(body) });
      for (const key of hostileKeys) expect(await write(key, 'first')).toEqual({ existed: false, bytes: 5 });
      expect(await h.records(of)).toBe(hostileKeys.length);
      for (const key of hostileKeys)
        expect(await write(key, 'the second')).toEqual({ existed: true, bytes: 5 });
    });

    it('holds what it cannot write and goes on when it can', async () => {
      const of = target('held');
      await sink.check();
      await sink.writePage(of, page(0));
      const accept = await h.refuse();
      for (const attempt of [
        () => sink.check(),
        () => sink.writePage(of, page(1)),
        () => sink.begin(target('held-new')),
        () => sink.settle(of, outcome(of)),
      ]) {
        await expect(attempt()).rejects.toBeInstanceOf(SinkHeldError);
      }
      await accept();
      await sink.check();
      expect(await sink.writePage(of, page(0))).toMatchObject({ existed: true });
      expect(await sink.writePage(of, page(1))).toMatchObject({ existed: false });
      await sink.settle(of, outcome(of));
      expect(await h.items(of)).toEqual([...lines(0), ...lines(1)]);
    });
  });
}
