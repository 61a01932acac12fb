import fc from 'fast-check';
import { expect, it } from 'vitest';
import { outcomeDocument } from '../../src/run/outcome.js';
import { outcomes } from '../../src/scrape/types.js';
import { histories as numRuns, seed } from '../fuzz/size.js';
import { spec } from './attempts.js';
import { History } from './history.js';

const histories = fc
  .record({
    rolls: fc.array(fc.nat(1_000), { minLength: 12, maxLength: 220, size: 'max' }),
    spec: fc.record({
      deadlineMs: fc.constantFrom(60_000, 600_000, 1_000),
      minItems: fc.constantFrom(1, 0, 20),
      onEmpty: fc.constantFrom('warn', 'fail', 'retry'),
      maxItems: fc.constantFrom(null, 5),
      maxTotalChargeUsd: fc.constantFrom(null, 0.25),
    }),
    expiresInMs: fc.constantFrom(null, null, null, 20_000),
  })
  .map(({ rolls, spec: asked, expiresInMs }) => new History(rolls, spec(asked), expiresInMs).play());

/** Checked on each of the same histories: playing them is what costs time. */
function check(history: History): void {
  const { saved, server, pages, slices, decisions } = history;
  expect(history.breaches).toEqual([]);

  expect(decisions).toHaveLength(1);
  expect(saved.phase).toBe('decided');
  const { decision } = saved;
  if (decision === null) throw new Error('decided without a decision');
  expect(outcomes).toContain(decision.outcome);
  expect(decision.message).toMatch(/^[^\n\p{Cc}]{3,1000}$/u);

  expect(server.runs.length, 'runs that were paid for').toBeLessThanOrEqual(1);
  if (decision.outcome === 'rejected' || decision.outcome === 'expired') expect(server.runs).toEqual([]);

  // Nothing of ours is left running, but where the server said for a minute that there is nothing.
  const underWay = server.run !== undefined && !server.isFinal(saved.decision?.finishedAt ?? 0);
  if (underWay) expect(['lost', 'start_unknown']).toContain(decision.outcome);

  for (const [index, slice] of slices.entries()) {
    const before = slices[index - 1];
    expect(slice.limit).toBeGreaterThanOrEqual(1);
    if (before === undefined) continue;
    expect(slice.offset).toBeGreaterThanOrEqual(before.offset);
    expect(slice.index).toBeGreaterThanOrEqual(before.index);
  }

  const written = [...pages].sort(([a], [b]) => a - b);
  expect(written.map(([index]) => index)).toEqual(written.map((_, index) => index));
  const items = written.flatMap(([, lines]) => lines);
  expect(items, 'each item once, in order').toEqual(server.items.slice(0, items.length));
  expect(saved.items).toBeLessThanOrEqual(items.length);
  const whole =
    saved.status === 'SUCCEEDED' && decision.outcome !== 'failed' && decision.outcome !== 'cancelled';
  if (whole) {
    expect(items).toHaveLength(server.items.length);
    expect(saved.items).toBe(items.length);
  }
  if (decision.outcome === 'empty') expect(server.items).toEqual([]);

  const subject = { id: 'a', batch: 'default', server: 'apify', tool: 'acme/pages', meta: null };
  const document = outcomeDocument(saved, subject, decision, '/results');
  expect(JSON.parse(JSON.stringify(document))).toEqual(document);
}

/** What a thousand histories have to come by, or they prove little. */
const sights = ['pages', 'aborts', ...outcomes.filter((outcome) => outcome !== 'errored')];

it('random histories keep the promises: one outcome, one run, nothing left running, each item once', {
  timeout: 120_000,
}, () => {
  const seen = new Map<string, number>();
  const count = (sight: string) => seen.set(sight, (seen.get(sight) ?? 0) + 1);
  const property = fc.property(histories, (history) => {
    count(history.saved.decision?.outcome ?? 'none');
    if (history.pages.size > 1) count('pages');
    if (history.saved.abortTries > 0) count('aborts');
    check(history);
  });
  fc.assert(property, { numRuns, seed });
  const unseen = sights.filter((sight) => (seen.get(sight) ?? 0) < 2);
  expect(unseen, JSON.stringify([...seen])).toEqual([]);
});
