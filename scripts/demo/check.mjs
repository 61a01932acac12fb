import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Compares what the rows of the job file are meant to become (`meta.expect`; `succeeded` when there is none) with what
 * lies on disk and with what the simulated server was asked for.
 */
export function check(folder, jobsFile, sim) {
  const faults = [];
  const jobs = readFileSync(jobsFile, 'utf8').trim().split('\n').map(JSON.parse);
  const runs = new Map(sim.runs().map((run) => [run.runId, run]));
  const times = { items: Number.POSITIVE_INFINITY, first: Number.POSITIVE_INFINITY, last: 0 };
  let items = 0;
  let owed = 0;
  for (const { id, meta } of jobs) {
    const place = join(folder, 'results/batch=businesses', `scrape=${id}`);
    const outcome = readOutcome(place);
    const expected = meta?.expect ?? 'succeeded';
    if (outcome?.outcome !== expected) {
      faults.push(
        `${id} is ${outcome?.outcome ?? 'not settled'}, not ${expected}. ${outcome?.message ?? ''}`,
      );
      continue;
    }
    const finishedAt = Date.parse(outcome.finishedAt);
    if (outcome.runId !== null) {
      owed += 1;
      times.first = Math.min(times.first, finishedAt);
    }
    times.last = Math.max(times.last, finishedAt);
    const pages = pagesOf(place);
    for (const page of pages) times.items = Math.min(times.items, statSync(page).mtimeMs);
    const places = pages.flatMap(indexes);
    items += places.length;
    const held = itemsOf(outcome, runs);
    if (places.length !== held) faults.push(`${id} has ${places.length} items on disk, and its run ${held}.`);
    if (places.some((index, line) => index !== line))
      faults.push(`${id} has items missing, twice or out of order.`);
  }
  const { starts, inFlight } = sim.stats();
  if (starts !== owed) faults.push(`${starts} runs were started for ${owed} scrapes.`);
  if (inFlight > 0) faults.push(`${inFlight} runs are still under way.`);
  const lines = [
    `all ${jobs.length} scrapes ended as they were meant to`,
    `${items} items lie on disk, each exactly once`,
    `${starts} runs were started for ${owed} scrapes that needed one`,
    'none is left running',
  ];
  return { faults, lines, times };
}

function readOutcome(place) {
  try {
    return JSON.parse(readFileSync(join(place, 'outcome.json'), 'utf8'));
  } catch {
    return null;
  }
}

/** How many items the run held; one that was aborted holds what it had got to, which the outcome tells. */
function itemsOf({ runId, runStatus, items }, runs) {
  if (runId === null) return 0;
  return runStatus === 'ABORTED' ? items : (runs.get(runId)?.items ?? -1);
}

function pagesOf(place) {
  return readdirSync(place)
    .filter((name) => /^page-\d+\.ndjson$/.test(name))
    .sort()
    .map((name) => join(place, name));
}

/** The simulator numbers the items of a run: `_i` of each line, from 0. */
function indexes(page) {
  return readFileSync(page, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line)._i);
}
