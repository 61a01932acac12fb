/** Promise 7: each refusal, with the API's error type and as a bare sentence, is the fault of whom design B5 says. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RefusalName, type Sim, startSim } from '../sim/index.js';
import { Fleet } from '../workers/fleet.js';
import { yellowPages } from '../workers/harness.js';
import { input, quick, said } from './broken.js';

interface Expected {
  readonly event: 'server.held' | 'server.cool_down' | 'tool.held' | null;
  readonly reason?: string;
}

const server = (reason: string): Expected => ({ event: 'server.held', reason });
const tool = (reason: string): Expected => ({ event: 'tool.held', reason });
const notNow: Expected = { event: 'server.cool_down', reason: 'capacity' };
const scrape: Expected = { event: null };

const classes: Partial<Record<RefusalName, Expected>> = {
  concurrency: notNow,
  cannot_start: notNow,
  memory: notNow,
  actor_memory: notNow,
  auth: server('auth'),
  payment: server('payment'),
  usage: server('payment'),
  platform_feature: server('payment'),
  not_rented: tool('payment'),
  not_approved: tool('auth'),
  permissions: tool('auth'),
  disabled: tool('tools_missing'),
  public_disabled: tool('tools_missing'),
  removed: tool('tools_missing'),
  bad_input: scrape,
  min_charge: scrape,
};

/** A server of the configuration each, so that no hold touches another case. */
const cases = Object.entries(classes).flatMap(([refusal, expected]) =>
  [false, true].map((bare) => ({
    refusal,
    bare,
    expected,
    name: `${refusal.replaceAll('_', '-')}${bare ? '-bare' : ''}`,
  })),
);

let sim: Sim;
let fleet: Fleet;

beforeAll(async () => {
  sim = await startSim({ conditions: { mix: 'fixed' } });
  const one = {
    url: sim.url,
    token: 't',
    tools: [yellowPages],
    limits: { runs: 2, requestsPerSecond: 1000 },
  };
  fleet = await Fleet.inFrontOf(Object.fromEntries(cases.map(({ name }) => [name, one])));
  await fleet.daemon({ timing: quick, intake: false });
  await Promise.all(
    cases.map(({ name, refusal, bare }) => {
      const sim = { refuse: refusal, refuseBare: bare, refuseTimes: 1 };
      return fleet.add(name, { server: name, tool: yellowPages, input: input(name, sim) });
    }),
  );
});
afterAll(async () => {
  await fleet?.close();
  await sim?.close();
});

describe('a start that is refused once', () => {
  it.each(cases)('$name', { timeout: 45_000 }, async ({ name, expected }) => {
    const outcome = await fleet.outcome(name, 45_000);
    const holds = ['server.held', 'server.cool_down', 'tool.held'].flatMap((event) =>
      said(fleet, event)
        .filter((line) => line.server === name)
        .map(({ reason }) => ({ event, reason })),
    );
    if (expected.event === null) {
      expect(outcome).toMatchObject({ outcome: 'rejected', runId: null });
      expect(outcome.message).toMatch(/^The server refused this scrape: /);
      expect(holds).toEqual([]);
      return;
    }
    expect(outcome).toMatchObject({ outcome: 'succeeded', items: 1, attempt: 1 });
    // One clear line a hold, and it ended by itself.
    expect(holds).toEqual([expected]);
  });
});
