/** Promise 11: what crashes its process every time ends alone. A process is started for each crash. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { OutcomeDocument } from '../../src/scrape/types.js';
import { type Bench, yellowPages } from '../workers/harness.js';
import { backlog, broken, input, quick, tally } from './broken.js';
import { spawnWorker } from './children.js';

describe('a job that crashes its process every time', () => {
  const timing = { ...quick, lockMs: 3_000, stalledEveryMs: 500, startingMs: 3_000 };
  const crashes = { accept: 'at-accept', poll: 'at-poll', page: 'at-page' };
  let bench: Bench;
  let died = 0;
  beforeAll(async () => {
    bench = await broken({ limits: { runs: 8 } }, timing);
    await Promise.all(bench.daemons.splice(0).map((daemon) => daemon.stop(1_000)));
    let closed = false;
    bench.onClose(() => {
      closed = true;
    });
    const revive = async (): Promise<void> => {
      const child = await spawnWorker(bench, timing, crashes);
      child.once('exit', () => {
        died += 1;
        if (!closed) void revive();
      });
    };
    await revive();
  });
  afterAll(() => bench?.close());

  it('ends as errored, its run is aborted, and others are not touched', { timeout: 150_000 }, async () => {
    await Promise.all([
      bench.add('at-accept', { input: input('at-accept') }),
      bench.add('at-poll', { input: input('at-poll', { runSecs: 600 }) }),
      bench.add('at-page', { input: input('at-page', { items: 4 }) }),
    ]);
    const others = await backlog(bench, 30);
    expect(await tally(bench, others, 140_000)).toEqual({ succeeded: 30 });
    const [accept, poll, page] = await Promise.all(
      ['at-accept', 'at-poll', 'at-page'].map((id) => bench.outcome(id, 140_000)),
    );
    expect(accept).toMatchObject({ outcome: 'errored', runId: null });
    expect(poll).toMatchObject({ outcome: 'errored', runId: expect.stringMatching(/^run/) });
    expect(page).toMatchObject({ outcome: 'errored', runStatus: 'SUCCEEDED' });
    for (const { message } of [accept, poll, page] as OutcomeDocument[]) {
      expect(message).toMatch(/crashed its workers? \d+ times; look for the crash in the logs/);
    }
    const starts = bench.sim.ledger.starts(yellowPages);
    expect(starts).toHaveLength(32);
    const run = () => bench.sim.runs().find(({ runId }) => runId === poll?.runId);
    await vi.waitFor(() => expect(run()?.status).toBe('ABORTED'), 10_000);
    expect(died).toBeGreaterThanOrEqual(4);
  });
});
