/** Whose start was never answered looks through the same list of runs: one reads it for all. */
import { describe, expect, it } from 'vitest';
import type { WorkerContext } from '../../workers/context.js';
import { RunWalks } from '../../workers/run-walks.js';

const t0 = 1_800_000_000_000;

/** A server with a run a second, the newest `0 s` old; run 3 is claimed. */
function bench(runs: number) {
  let now = t0;
  let lists = 0;
  const port = {
    async listRuns({ offset, limit }: { offset: number; limit: number }) {
      lists += 1;
      await Promise.resolve();
      const size = Math.max(0, Math.min(limit, runs - offset));
      const row = (index: number) => ({
        runId: `run${offset + index}`,
        storeId: `store${offset + index}`,
        startedAtMs: t0 - (offset + index) * 1_000,
      });
      return {
        ok: true,
        value: { total: runs, runs: Array.from({ length: size }, (_, index) => row(index)) },
      };
    },
  };
  const ctx = {
    now: () => now,
    keys: { claim: (_account: string, runId: string) => runId },
    redis: { mget: async (ids: string[]) => ids.map((id) => (id === 'run3' ? 'default.other' : null)) },
    server: () => ({ port, account: 'a' }),
  } as unknown as WorkerContext;
  const pass = (ms: number) => {
    now += ms;
  };
  return { ctx, lists: () => lists, pass };
}

describe('a walk through the runs of a server', () => {
  it('goes as far back as asked, and leaves out what is claimed', async () => {
    const { ctx, lists } = bench(1_000);
    const walked = await new RunWalks().back(ctx, 'apify', t0 - 24_500);
    expect(lists()).toBe(3);
    expect(walked).toMatchObject({ do: 'look', walk: { begunAt: t0, reaches: t0 - 29_000 } });
    const ids = walked.do === 'look' ? walked.walk.runs.map(({ runId }) => runId) : [];
    expect(ids).toHaveLength(29);
    expect(ids).not.toContain('run3');
  });

  it('ends with the list, and with 2,000 runs of one that is longer', async () => {
    const short = bench(4);
    expect(await new RunWalks().back(short.ctx, 'apify', 0)).toMatchObject({
      walk: { reaches: Number.NEGATIVE_INFINITY },
    });
    const long = bench(5_000);
    expect(await new RunWalks().back(long.ctx, 'apify', 0)).toMatchObject({
      walk: { reaches: t0 - 1_999_000 },
    });
    expect(long.lists()).toBe(200);
  });

  it('is made by one for all who ask meanwhile and in the seconds after', async () => {
    const { ctx, lists, pass } = bench(1_000);
    const walks = new RunWalks();
    const asked = await Promise.all(Array.from({ length: 50 }, () => walks.back(ctx, 'apify', t0 - 95_000)));
    expect(asked.map((walked) => walked.do)).toEqual(['look', ...Array.from({ length: 49 }, () => 'busy')]);
    pass(4_999);
    expect(await walks.back(ctx, 'apify', t0 - 60_000)).toMatchObject({ do: 'look', walk: { begunAt: t0 } });
    expect(lists()).toBe(10);
    // Not far enough back for this one, and too old for the other.
    expect(await walks.back(ctx, 'apify', t0 - 120_000)).toMatchObject({ walk: { begunAt: t0 + 4_999 } });
    pass(5_000);
    expect(await walks.back(ctx, 'apify', t0 - 60_000)).toMatchObject({ walk: { begunAt: t0 + 9_999 } });
  });
});
