import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addLook, keptLooks, type Look, readLooks } from '../../src/run/looks.js';
import { t0 } from './attempts.js';

const look = (seconds: number, status: string, items: number | null): Look => ({
  at: t0 + seconds * 1000,
  status,
  items,
});
const textOf = (looks: readonly Look[]) =>
  looks.reduce<string | null>((text, each) => addLook(text, each), null);

describe('looks at a run', () => {
  it('come back as they were, to the second', () => {
    const looks = [
      look(0, 'READY', null),
      look(30, 'RUNNING', 0),
      look(60, 'RUNNING', 12),
      look(90, 'UNANSWERED', null),
      look(120, 'RUNNING', 12),
      look(150, 'SUCCEEDED', 40),
    ];
    // A failed look keeps the count of the one before it.
    const read = looks.map((each, index) => (index === 3 ? { ...each, items: 12 } : each));
    expect(readLooks(textOf(looks))).toEqual(read);
  });

  it('say only what changed: half an hour of a steady run is short', () => {
    const looks = Array.from({ length: 60 }, (_, index) => look(30 * index, 'RUNNING', 7 * index));
    expect(textOf(looks)?.length).toBeLessThan(360);
    const still = Array.from({ length: 60 }, (_, index) => look(30 * index, 'RUNNING', 7));
    expect(textOf(still)?.length).toBeLessThan(130);
  });

  it('are bounded, whatever is added, and the last ones stay', () => {
    const any = fc.record({
      at: fc.integer({ min: 0, max: 4e12 }),
      status: fc.oneof(fc.constantFrom('RUNNING', 'ABORTED', 'TIMING-OUT'), fc.string()),
      items: fc.option(fc.nat(1e9)),
    });
    fc.assert(
      fc.property(fc.array(any, { maxLength: 150 }), (looks) => {
        const text = textOf(looks) ?? '';
        expect(text.length).toBeLessThan(keptLooks * 20);
        expect(text).toMatch(/^[0-9a-zA-Z.,]*$/);
        expect(readLooks(text)).toHaveLength(Math.min(looks.length, keptLooks));
      }),
    );
    const last = textOf(Array.from({ length: 200 }, (_, index) => look(index, 'RUNNING', index)));
    expect(readLooks(last).at(-1)).toEqual(look(199, 'RUNNING', 199));
    expect(readLooks(last)[0]).toEqual(look(140, 'RUNNING', 140));
  });

  it.each([null, '', 'no looks at all', '1R,<script>', '1R,,2', 'zzzzzzzzzzzzzzzz'])(
    '%j is read without harm',
    (text) => {
      expect(readLooks(text).length).toBeLessThanOrEqual(1);
    },
  );
});
