import type { InProgress } from '../../queue/in-progress.js';
import type { ScrapeStatus, ServerOverview } from '../../queue/status.js';
import { outcomeClass } from '../../run/outcome.js';
import { cleanText } from '../../scrape/clean-text.js';
import type { OutcomeDocument } from '../../scrape/types.js';

/** What the API says of things. Times are milliseconds since 1970. Texts from outside are one clean line, bounded. */

export function serverView({ name, runsInFlight, runSlots, waiting, parked, state }: ServerOverview) {
  return {
    name,
    runsInFlight,
    runSlots,
    waiting,
    setAside: parked,
    pausedSince: state.pausedSince,
    hold: holdView(state.hold),
    coolUntil: state.coolUntil,
    coolReason: state.coolReason,
    tools: Object.entries(state.tools).map(([tool, { hold, pausedSince }]) => ({
      tool: cleanText(tool, 260),
      hold: holdView(hold),
      pausedSince,
    })),
  };
}

function holdView(hold: ServerOverview['state']['hold']) {
  return hold === null
    ? null
    : { reason: hold.reason, since: hold.since, message: cleanText(hold.message, 500) };
}

export function progressView({ batch, id, server, attempt }: InProgress) {
  return {
    batch,
    id,
    server,
    tool: optional(attempt?.spec?.tool, 260),
    phase: attempt?.phase ?? 'queued',
    status: optional(attempt?.status, 40),
    attempt: attempt?.n ?? null,
    submittedAt: attempt?.submittedAt ?? null,
    startedAt: attempt?.startedAt ?? null,
    deadlineAt: attempt?.deadlineAt ?? null,
    cancelledAt: attempt?.cancelledAt ?? null,
    polls: attempt?.polls ?? 0,
    itemsSeen: attempt?.itemCount ?? null,
    itemsWritten: attempt?.items ?? 0,
    pages: attempt?.pages ?? 0,
  };
}

/** A settled scrape in a list. */
export function problemView(outcome: OutcomeDocument) {
  return {
    batch: outcome.batch,
    id: outcome.id,
    server: cleanText(outcome.server, 40),
    tool: cleanText(outcome.tool, 260),
    outcome: outcome.outcome,
    message: cleanText(outcome.message, 600),
    items: outcome.items,
    attempt: outcome.attempt,
    finishedAt: Date.parse(outcome.finishedAt),
  };
}

/** One scrape, settled or not. */
export function scrapeView({ batch, id, attempt, outcome, jobState }: ScrapeStatus) {
  const spec = attempt?.spec ?? null;
  return {
    batch,
    id,
    server: optional(outcome?.server ?? spec?.server, 40),
    tool: optional(outcome?.tool ?? spec?.tool, 260),
    phase: outcome !== null ? 'done' : (attempt?.phase ?? 'queued'),
    accepted: attempt !== null,
    /** What a retry would find: only a failed job has a next attempt. */
    canRetry: jobState === 'failed',
    canCancel: outcome === null && jobState !== 'failed' && jobState !== 'completed',
    outcome: outcome?.outcome ?? null,
    class: outcome === null ? null : outcomeClass(outcome.outcome, spec?.onEmpty),
    message: optional(outcome?.message, 600),
    warnings: (outcome?.warnings ?? attempt?.warnings ?? []).slice(0, 20).map((text) => cleanText(text, 600)),
    attempt: outcome?.attempt ?? attempt?.n ?? null,
    runId: optional(outcome?.runId ?? attempt?.runId, 80),
    status: optional(outcome?.runStatus ?? attempt?.status, 40),
    statusMessage: optional(outcome?.statusMessage ?? attempt?.statusMessage, 500),
    deadlineAt: outcome === null ? (attempt?.deadlineAt ?? null) : null,
    cancelledAt: attempt?.cancelledAt ?? null,
    polls: outcome?.polls ?? attempt?.polls ?? 0,
    items: outcome?.items ?? attempt?.items ?? 0,
    itemsSeen: attempt?.itemCount ?? null,
    pages: outcome?.pages ?? attempt?.pages ?? 0,
    bytes: outcome?.bytes ?? attempt?.bytes ?? 0,
    usageUsd: outcome?.usageUsd ?? attempt?.usageUsd ?? null,
    durationSeconds: outcome?.durationSeconds ?? null,
    destination: optional(outcome?.destination, 1024),
  };
}

function optional(text: string | null | undefined, max: number): string | null {
  return text === null || text === undefined ? null : cleanText(text, max);
}
