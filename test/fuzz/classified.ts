import { expect } from 'vitest';
import type { CallFailure, CallResult, RunView } from '../../src/mcp/port.js';
import { finalStatuses } from '../../src/mcp/port.js';
import type { Decision } from '../../src/run/attempt.js';
import { outcomeDocument } from '../../src/run/outcome.js';
import { afterRead, beforeRead } from '../../src/run/pages.js';
import { afterAbort, afterPoll } from '../../src/run/poll.js';
import { afterStart } from '../../src/run/start.js';
import { outcomes } from '../../src/scrape/types.js';
import { reading, running, spec, t0 } from '../run/attempts.js';
import { canary, unprintable } from './hostile.js';

const kinds = [
  'tool_error',
  'invalid_input',
  'protocol_error',
  'rate_limited',
  'capacity',
  'http_error',
  'network_error',
  'timeout',
  'session_lost',
  'invalid_response',
];
const refusals = ['not_now', 'server', 'tool', 'scrape', 'unknown', 'none'];

/** Plain comparisons: 12,000 times `expect` would cost more than what is tested. */
function must(condition: boolean, what: string, seen: unknown): void {
  if (!condition) expect.fail(`${what}: ${JSON.stringify(seen)?.slice(0, 500)}`);
}

export function mustBePlain(text: string, longest: number, what: string): void {
  must(text.length <= longest, `${what} is too long`, text);
  must(!unprintable.test(text), `${what} holds control characters`, text);
  must(!text.includes(canary), `${what} holds the token`, text);
}

/** A failure is of a known kind, and its words are fit for logs, Redis and people. */
export function mustBeFailure(failure: CallFailure): void {
  must(kinds.includes(failure.kind), 'kind', failure);
  must(refusals.includes(failure.refusal), 'refusal', failure);
  const holds = ['not_now', 'server', 'tool'].includes(failure.refusal);
  must(holds ? failure.holdReason !== null : failure.holdReason === null, 'hold reason', failure);
  mustBePlain(failure.message, 500, 'message');
  must(failure.apiErrorType === null || /^[a-z0-9-]{1,64}$/.test(failure.apiErrorType), 'type', failure);
  must(failure.rpcCode === null || Number.isSafeInteger(failure.rpcCode), 'code', failure);
  const { retryAfterMs } = failure;
  must(retryAfterMs === null || (retryAfterMs >= 0 && retryAfterMs <= 600_000), 'retry after', failure);
}

export function mustBeRun(run: RunView): void {
  const isCount = (value: number | null) => value === null || (Number.isSafeInteger(value) && value >= 0);
  for (const id of [run.runId, run.datasetId, run.storeId]) {
    must(id === null || /^(?!.*apify_api_)[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(id), 'id', run);
  }
  must(/^[A-Z][A-Z-]{1,31}$/.test(run.status), 'status', run);
  must(run.final === (finalStatuses as readonly string[]).includes(run.status), 'final', run);
  if (run.statusMessage !== null) mustBePlain(run.statusMessage, 500, 'status message');
  must(isCount(run.itemCount), 'count', run);
  must(run.usageUsd === null || (run.usageUsd >= 0 && run.usageUsd <= 1e9), 'usage', run);
  must(run.recordKeys.length <= 200 && run.otherDatasets.length <= 50, 'lists', run);
  for (const other of run.otherDatasets) mustBePlain(other.name, 100, 'name of a dataset');
}

function mustBeDecision(decision: Decision): void {
  must(outcomes.includes(decision.outcome), 'outcome', decision);
  mustBePlain(decision.message, 2_000, 'message of the outcome');
  const subject = { id: 'a', batch: 'b', server: 'apify', tool: 'acme/pages', meta: null };
  JSON.stringify(outcomeDocument(running(), subject, decision, null));
}

/** What the core does with an answer, whichever call it was of: something it has a name for, at a time that comes. */
export function mustLeadOn(result: CallResult<never> | CallResult<RunView>): void {
  const now = t0 + 60_000;
  const nexts: { do: string; until?: number; decision?: Decision }[] = [
    afterStart(result, now),
    afterPoll(running(), result, now, 30_000),
    afterPoll(running({ unknownSince: t0 - 90_000, unknownTimes: 5 }), result, t0 + 9_000_000, 30_000),
    afterAbort(running({ phase: 'aborting' }), spec(), result, now),
    afterAbort(running({ phase: 'aborting', cancelledAt: t0 }), spec(), result, now),
  ];
  if (!result.ok) {
    const slice = { index: 0, offset: 0, limit: 10 };
    nexts.push(afterRead(reading(), slice, result, now, 10_000));
    nexts.push(afterRead(reading(), slice, result, now + 3_600_000, 10_000));
  } else if (result.value.final) {
    const seen = afterPoll(running(), result, now, 30_000);
    if (seen.do === 'read') {
      nexts.push(beforeRead(reading({ ...seen.sighting }), spec(), 10_000, now));
      nexts.push(beforeRead(reading({ ...seen.sighting, cancelledAt: t0 }), spec(), 10_000, now));
      for (const place of seen.sighting.elsewhere) mustBePlain(place, 300, 'place beside the dataset');
    }
  }
  for (const next of nexts) {
    must(typeof next.do === 'string', 'nothing to do', next);
    if (next.until !== undefined) must(next.until > t0 && next.until < now + 1e9, 'time', next);
    if (next.decision !== undefined) mustBeDecision(next.decision);
  }
}

export function mustBeUnpolluted(): void {
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect(Object.keys(Object.prototype)).toEqual([]);
}
