import type { OutcomeDocument } from '../../src/scrape/types.js';
import type { SinkTarget } from '../../src/sinks/contract.js';

export function target(id: string, attempt = 1): SinkTarget {
  return { batch: 'leads', id, attempt, digest: 'd1' };
}

/** The lines of page `index`, ten a page; `run` tells the items of one run from another's. */
export function lines(index: number, run = 'run-1'): string[] {
  return Array.from({ length: 10 }, (_, at) =>
    JSON.stringify({ n: index * 10 + at, run, text: 'é\u2028"x"' }),
  );
}

export const page = (index: number, run?: string) => ({
  index,
  offset: index * 10,
  lines: lines(index, run),
});

export function outcome(of: SinkTarget, more: Partial<OutcomeDocument> = {}): OutcomeDocument {
  return {
    id: of.id,
    batch: of.batch,
    server: 'apify',
    tool: 'compass/crawler-google-places',
    outcome: 'succeeded',
    message: 'Done.',
    runId: 'r1',
    datasetId: 'ds1',
    runStatus: 'SUCCEEDED',
    statusMessage: null,
    items: 10,
    pages: 1,
    bytes: 100,
    usageUsd: null,
    attempt: of.attempt,
    polls: 1,
    submittedAt: '2026-12-02T10:00:00.000Z',
    startedAt: null,
    finishedAt: '2026-12-02T10:01:00.000Z',
    durationSeconds: 60,
    destination: null,
    warnings: [],
    meta: { row: 17 },
    ...more,
  };
}
