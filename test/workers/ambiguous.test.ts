import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawClient } from '../simulator/client.js';
import { Bench, maps, yellowPages } from './harness.js';

let bench: Bench;
beforeAll(async () => {
  bench = await Bench.open({ config: { start: { timeout: '3s' } } });
  await bench.daemon({
    timing: {
      orphanAfterMs: 3_000,
      certainAfterMs: 4_000,
      unknownAfterMs: 20_000,
      reapEveryMs: 1_000,
      sweepEveryMs: 500,
    },
  });
});
afterAll(() => bench.close());

const input = (search: string, sim: Record<string, unknown> = {}) => ({
  search,
  location: 'Austin, TX',
  sim: { runSecs: 1, readySecs: 0, lagSecs: 0, items: 3, ...sim },
});

const faults = ['drop_after', 'reset_after', 'http_500_after', 'run_id_lost', 'not_json', 'cut'];
const idOf = (fault: string) => `lost-${fault.replaceAll('_', '-')}`;
const twins = ['twin-a', 'twin-b', 'twin-c'];

// All at once: most of each is waiting.
beforeAll(async () => {
  for (const fault of faults) await bench.add(idOf(fault), { input: input(idOf(fault), { fault }) });
  const unheard = { faults: [{ op: 'start', kind: 'reset_before' }] };
  await bench.add('no-effect', { input: input('no-effect', unheard) });
  for (const id of twins) await bench.add(id, { input: input('twins', { fault: 'drop_after' }) });
});

describe('a start whose answer was lost', () => {
  it.each(faults)('adopts its run after %s', { timeout: 40_000 }, async (fault) => {
    const outcome = await bench.outcome(idOf(fault), 40_000);
    expect(outcome).toMatchObject({ outcome: 'succeeded', items: 3, attempt: 1 });
    expect(startsOf(idOf(fault))).toBe(1);
  });

  it('starts again when the list proves that there is no run', { timeout: 40_000 }, async () => {
    const outcome = await bench.outcome('no-effect', 40_000);
    expect(outcome).toMatchObject({ outcome: 'succeeded', items: 3 });
    expect(startsOf('no-effect')).toBe(1);
    expect(bench.logged.filter(({ event }) => event === 'start.repeated')).toHaveLength(1);
  });

  it('never lets two scrapes of equal inputs have the same run', { timeout: 40_000 }, async () => {
    const outcomes = await Promise.all(twins.map((id) => bench.outcome(id, 40_000)));
    expect(outcomes.map((outcome) => outcome.outcome)).toEqual(['succeeded', 'succeeded', 'succeeded']);
    expect(new Set(outcomes.map((outcome) => outcome.runId)).size).toBe(3);
    expect(startsOf('twins')).toBe(3);
  });

  it('aborts the second run of one call, and no run that others make with the account', {
    timeout: 60_000,
  }, async () => {
    await bench.add('double', { input: input('double', { runSecs: 45, fault: 'double_run' }), deadline: 60 });
    await expect.poll(() => runsOf('double').length, { timeout: 20_000 }).toBe(2);
    const stranger = await RawClient.connect(bench.sim.url, { tools: `${yellowPages},${maps},call-actor` });
    const asked = input('double', { runSecs: 45 });
    // Another Actor with our input, and our Actor with an input of its own.
    await stranger.call('call-actor', {
      actor: maps,
      input: { ...asked, searchStringsArray: ['x'] },
      waitSecs: 0,
    });
    await stranger.call('call-actor', { actor: yellowPages, input: { ...asked, maxItems: 7 }, waitSecs: 0 });
    const running = () =>
      bench.sim.runs().filter((run) => run.status === 'RUNNING' || run.status === 'READY').length;
    expect(running()).toBe(4);
    const aborted = () => runsOf('double').filter((status) => status === 'ABORTED').length;
    await expect.poll(aborted, { timeout: 30_000 }).toBe(1);
    // The orphan was the youngest of the suspects; whoever else was to be aborted would be by the next turn.
    await expect.poll(() => bench.logged.filter(({ event }) => event === 'orphan.aborted').length).toBe(1);
    expect(running()).toBe(3);
    await bench.daemons[0]?.ctx.cancel('default.double');
    await expect.poll(aborted, { timeout: 10_000 }).toBe(2);
    expect(running()).toBe(2);
  });
});

function startsOf(search: string): number {
  return bench.sim.ledger.starts(yellowPages).filter((entry) => entry.input?.includes(`"${search}"`)).length;
}

function runsOf(search: string): string[] {
  const ids = new Set(
    bench.sim.ledger
      .starts(yellowPages)
      .filter((entry) => entry.input?.includes(`"${search}"`))
      .map((entry) => entry.runId),
  );
  return bench.sim
    .runs()
    .filter((run) => ids.has(run.runId))
    .map((run) => run.status);
}
