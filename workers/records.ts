import type { RecordView } from '../src/mcp/port.js';
import type { Attempt, RunSpec } from '../src/run/attempt.js';
import { isOnTheWay } from '../src/run/pages.js';
import { nextReadAt } from '../src/run/schedule.js';
import { cleanText } from '../src/scrape/clean-text.js';
import type { SinkTarget } from '../src/sinks/contract.js';
import type { WorkerContext } from './context.js';
import { save } from './pages.js';
import { heldOnTheWay } from './refusals.js';
import { aboutOf, complete, cutOff, type Next, type Step } from './stage.js';

type Records =
  | { readonly do: 'done'; readonly attempt: Attempt }
  | { readonly do: 'leave'; readonly next: Next };

/** How often a record that cannot be read is tried before it becomes a warning: half a minute. */
const triesPerRecord = 5;
/** The same while the server, or the way to it, fails: a quarter of an hour at least. */
const triesOnTheWay = 30;
/** A server that refuses everybody is asked again this often, for as long as it does. */
const refusedMs = 10_000;

/** Writes the records a scrape asked for, after its items; a missing or linked one is a warning, not a failure. */
export async function writeRecords(
  ctx: WorkerContext,
  step: Step,
  spec: RunSpec,
  target: SinkTarget,
): Promise<Records> {
  let { attempt } = step;
  while (attempt.recordsDone < spec.records.length) {
    const key = spec.records[attempt.recordsDone] as string;
    const warnings = [...attempt.warnings];
    if (attempt.storeId === null) {
      warnings.push(`Record ${cleanText(key, 80)} could not be read: the run named no key-value store.`);
    } else {
      const askedAt = ctx.now();
      const result = await ctx
        .server(step.server)
        .port.readRecord(attempt.storeId, key, ctx.stopping, aboutOf(attempt));
      if (cutOff(ctx, result)) return { do: 'leave', next: { do: 'snooze', until: ctx.now() } };
      if (result.ok) {
        const warning = await writeRecord(ctx, target, key, result.value);
        if (warning !== null) warnings.push(warning);
      } else if (result.failure.notFound) {
        warnings.push(`Record ${cleanText(key, 80)} does not exist in the run's key-value store.`);
      } else if (result.failure.refusal === 'server' || result.failure.refusal === 'not_now') {
        const { holdReason, retryAfterMs, message } = result.failure;
        const reason = holdReason ?? 'unreachable';
        await heldOnTheWay(ctx, step.server, { reason, retryAfterMs, message }, askedAt);
        const until = ctx.now() + refusedMs + (retryAfterMs ?? 0);
        return { do: 'leave', next: { do: 'snooze', until } };
      } else if (attempt.reads + 1 < (isOnTheWay(result.failure) ? triesOnTheWay : triesPerRecord)) {
        const reads = attempt.reads + 1;
        if (!(await save(ctx, step, { reads }))) return { do: 'leave', next: complete };
        return { do: 'leave', next: { do: 'snooze', until: nextReadAt(ctx.now(), reads) } };
      } else {
        warnings.push(`Record ${cleanText(key, 80)} could not be read: ${result.failure.message}`);
      }
    }
    const patch = { recordsDone: attempt.recordsDone + 1, warnings, reads: 0 };
    if (!(await save(ctx, step, { ...patch, warnings: warnings.length > 0 ? warnings : null }))) {
      return { do: 'leave', next: complete };
    }
    attempt = { ...attempt, ...patch };
  }
  return { do: 'done', attempt };
}

async function writeRecord(
  ctx: WorkerContext,
  target: SinkTarget,
  key: string,
  record: RecordView,
): Promise<string | null> {
  if (record.kind === 'link') {
    return `Record ${cleanText(key, 80)} is too large to travel through MCP and was not fetched; the server keeps it at ${cleanText(record.uri, 200)}.`;
  }
  await ctx.sink.writeRecord(target, {
    key,
    contentType: record.contentType,
    body: record.body,
  });
  return null;
}
