import type { ToolAnswer } from './answer.js';
import {
  type DatasetView,
  isFinal,
  type Run,
  recordKeys,
  shapeOf,
  statusOf,
  storeIdOf,
  usageOf,
  viewDataset,
} from './runs.js';

/**
 * The answers that describe a run, key by key and sentence by sentence as the recorded ones
 * (`poll-succeeded.json` and its neighbours in test/wire).
 */
interface Entry {
  id: string;
  itemCount?: number;
  fields?: readonly string[];
}

/** The answer of `call-actor` with `waitSecs: 0`: always READY, ids alone, no usage (start-call-actor-wait0.json). */
export function startAnswer(run: Run): ToolAnswer {
  const datasets = entriesOf(run, run.startedAt, false);
  const store = { id: storeIdOf(run) };
  const sentences = sentencesOf(run, 'READY', run.startedAt, datasets.default, []);
  return assemble(
    {
      runId: run.id,
      actorId: run.actor.id,
      actorName: run.actor.name,
      status: 'READY',
      startedAt: new Date(run.startedAt).toISOString(),
      storages: { datasets, keyValueStores: { default: store } },
      ...sentences,
    },
    undefined,
  );
}

/** The answer of `get-actor-run` and of direct tools: metadata, keys and usage as far as they can be read now. */
export function runAnswer(run: Run, now: number): ToolAnswer {
  const status = statusOf(run, now);
  const final = isFinal(run, now);
  const datasets = entriesOf(run, now, true);
  const keys = final ? recordKeys(run) : [];
  const shownKeys = keys.slice(0, 50);
  const store = final
    ? { id: storeIdOf(run), keys: shownKeys, ...(keys.length > 50 ? {} : { keyCount: keys.length }) }
    : { id: storeIdOf(run) };
  const usage = usageOf(run, now);
  return assemble(
    {
      runId: run.id,
      actorId: run.actor.id,
      actorName: run.actor.name,
      status,
      statusMessage: run.statusMessage ?? undefined,
      exitCode: final ? exitCodeOf(run) : undefined,
      startedAt: new Date(run.startedAt).toISOString(),
      finishedAt: final ? new Date(run.endAt).toISOString() : undefined,
      stats: statsOf(run, now),
      storages: { datasets, keyValueStores: { default: store } },
      ...sentencesOf(run, status, now, datasets.default, keys),
    },
    usage === null
      ? undefined
      : `{"com.apify/ActorRun":{"usageTotalUsd":${usage},"usageUsd":{"ACTOR_COMPUTE_UNITS":${usage}}}}`,
  );
}

/** The answer of `abort-actor-run`: no Actor name, no exit code, ids alone, no usage (abort-*.json). */
export function abortAnswer(run: Run, now: number): ToolAnswer {
  const status = statusOf(run, now);
  const final = isFinal(run, now);
  const dataset: Entry = { id: `ds${run.id}` };
  return assemble(
    {
      runId: run.id,
      actorId: run.actor.id,
      status,
      statusMessage: run.statusMessage ?? undefined,
      startedAt: new Date(run.startedAt).toISOString(),
      finishedAt: final ? new Date(run.endAt).toISOString() : undefined,
      stats: statsOf(run, now),
      storages: { datasets: { default: dataset }, keyValueStores: { default: { id: storeIdOf(run) } } },
      ...sentencesOf(run, status, now, dataset, [], false),
    },
    undefined,
  );
}

function assemble<T extends { summary: string; nextStep: string }>(
  structured: T,
  meta: string | undefined,
): ToolAnswer {
  const json = JSON.stringify(structured);
  const texts = [`${structured.summary}\n${structured.nextStep}`];
  const answer = { isError: false, structured: json, mirror: json, texts };
  return meta === undefined ? answer : { ...answer, meta };
}

export const exitCodeOf = (run: Run): number => (run.endStatus === run.plan.status ? run.plan.exitCode : 1);

export function statsOf(run: Run, now: number) {
  const runTimeSecs = Math.max(0, Math.min(now, run.endAt) - run.startedAt) / 1000;
  return { runTimeSecs, computeUnits: (runTimeSecs / 3600) * (run.memoryMb / 1024), memMaxBytes: 123_456 };
}

function entriesOf(run: Run, now: number, enriched: boolean): Record<string, Entry> & { default: Entry } {
  const entry = (alias: string): Entry => {
    const view = viewDataset(run, alias, now) as DatasetView;
    if (!enriched || view.itemCount === null) return { id: view.id };
    if (view.itemCount === 0) return { id: view.id, itemCount: 0 };
    return { id: view.id, itemCount: view.itemCount, fields: shapeOf(run).fields };
  };
  const entries: Record<string, Entry> & { default: Entry } = { default: entry('default') };
  for (const { alias } of run.plan.otherDatasets) entries[alias] = entry(alias);
  return entries;
}

const plural = (count: number, one: string) => `${count} ${one}${count === 1 ? '' : 's'}`;

function sentencesOf(
  run: Run,
  status: string,
  now: number,
  dataset: Entry,
  keys: readonly string[],
  metadataRead = true,
): { summary: string; nextStep: string } {
  const poll = `Use get-actor-run with runId=${run.id} and waitSecs=30 to`;
  const elapsed = Math.max(0, Math.round((now - run.startedAt) / 1000));
  const took = statsOf(run, now).runTimeSecs;
  const said = statusLine(run.statusMessage);
  const soFar = dataset.itemCount ? ` ${plural(dataset.itemCount, 'result')} so far.` : '';
  switch (status) {
    case 'READY':
      return {
        summary: `READY. Run ${run.id} was created and is about to start.`,
        nextStep: `${poll} wait for progress.`,
      };
    case 'RUNNING':
      return {
        summary: `RUNNING for ${elapsed}s.${said || ' In progress.'}${soFar}`,
        nextStep: `${poll} poll for completion.`,
      };
    case 'TIMING-OUT':
      return {
        summary: `TIMING-OUT after ${elapsed}s.${said || ' Run-time limit reached; cleanup in progress.'}${soFar}`,
        nextStep: `${poll} observe terminal state.`,
      };
    case 'ABORTING':
      return {
        summary: `ABORTING after ${elapsed}s.${said || ' Cancellation in progress.'}${soFar}`,
        nextStep: `${poll} observe terminal state.`,
      };
    case 'SUCCEEDED':
      return succeeded(took, said, dataset, keys, metadataRead);
    case 'FAILED':
      return {
        summary: `FAILED after ${took}s.${said}`,
        nextStep:
          'Diagnose using statusMessage and exitCode in this response; re-run the Actor with adjusted input if the cause is fixable.',
      };
    case 'ABORTED':
      return {
        summary: `ABORTED after ${took}s.${said}`,
        nextStep: 'Re-run the Actor if you want to retry.',
      };
    default: {
      const fields = dataset.fields?.join(', ') ?? 'none';
      return {
        summary: `TIMED-OUT after ${took}s.${keySuffix(keys)}`,
        nextStep: `${fetch(dataset.id)} to fetch any partial output (${plural(dataset.itemCount ?? 0, 'item')} written). Available fields: ${fields}.`,
      };
    }
  }
}

const fetch = (datasetId: string) =>
  `Use get-dataset-items with datasetId=${datasetId} and limit (for example 20)`;

function succeeded(
  took: number,
  said: string,
  dataset: Entry,
  keys: readonly string[],
  metadataRead: boolean,
): { summary: string; nextStep: string } {
  const kept = keySuffix(keys);
  if (dataset.itemCount === undefined) {
    const unread = metadataRead ? ' Dataset metadata unavailable.' : '';
    return {
      summary: `SUCCEEDED in ${took}s.${unread}${said}${kept}`,
      nextStep: `${fetch(dataset.id)} to inspect output.`,
    };
  }
  if (dataset.itemCount === 0) {
    return {
      summary: `SUCCEEDED in ${took}s. Dataset item count reads 0 - counts can lag right after a run finishes.${said}${kept}`,
      nextStep: `Fetch get-dataset-items with datasetId=${dataset.id} and limit (for example 20) before concluding the run produced no output.`,
    };
  }
  const fields = dataset.fields ?? [];
  return {
    summary: `SUCCEEDED in ${took}s. ${plural(dataset.itemCount, 'item')}; ${fields.length} fields available.${kept}`,
    nextStep: `${fetch(dataset.id)} to fetch items (${dataset.itemCount} total). Available fields (dot notation): ${fields.join(', ')} — pass via fields="..." to project.`,
  };
}

function statusLine(message: string | null): string {
  const trimmed = message?.trim().replace(/\.+$/, '');
  return trimmed ? ` Actor status: "${trimmed}".` : '';
}

function keySuffix(keys: readonly string[]): string {
  const shown = keys.slice(0, 50);
  const outputs = shown.filter((key) => key !== 'INPUT').length;
  if (outputs === 0) return '';
  const label = keys.length > 50 ? `at least ${outputs} keys` : plural(outputs, 'key');
  return ` Key-value store has ${label}.`;
}
