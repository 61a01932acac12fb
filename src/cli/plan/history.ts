import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { OutcomeDocument } from '../../scrape/types.js';
import { readSmall } from '../../sinks/durable.js';

/** What past runs of a tool came to, on average. */
export interface ToolHistory {
  readonly runs: number;
  /** null: no run told. */
  readonly usageUsd: number | null;
  readonly items: number;
  readonly pages: number;
  readonly seconds: number;
}

/** Enough for an average, and read in a moment. */
const maxBatches = 20;
const maxScrapesOfBatch = 50;
const outcomeBytes = 1_048_576;

interface Sum {
  runs: number;
  usageUsd: number;
  usageKnown: number;
  items: number;
  pages: number;
  seconds: number;
}

/**
 * Averages over outcomes in the results directory: of the 20 newest batches, 50 scrapes each. By `server/tool`. A
 * directory that is not there or cannot be read has no history.
 */
export async function readHistory(resultsDir: string): Promise<Map<string, ToolHistory>> {
  const sums = new Map<string, Sum>();
  for (const batch of await newestBatches(resultsDir)) {
    const names = await namesIn(batch);
    const scrapes = names.filter((name) => name.startsWith('scrape=')).slice(0, maxScrapesOfBatch);
    const outcomes = await Promise.all(scrapes.map((name) => readOutcome(join(batch, name, 'outcome.json'))));
    for (const outcome of outcomes) if (outcome !== null) add(sums, outcome);
  }
  return new Map(
    [...sums].map(([key, sum]) => [
      key,
      {
        runs: sum.runs,
        usageUsd: sum.usageKnown === 0 ? null : sum.usageUsd / sum.usageKnown,
        items: sum.items / sum.runs,
        pages: sum.pages / sum.runs,
        seconds: sum.seconds / sum.runs,
      },
    ]),
  );
}

function add(sums: Map<string, Sum>, outcome: OutcomeDocument): void {
  if (outcome.runId === null) return;
  const key = `${outcome.server}/${outcome.tool}`;
  const sum = sums.get(key) ?? { runs: 0, usageUsd: 0, usageKnown: 0, items: 0, pages: 0, seconds: 0 };
  sums.set(key, sum);
  sum.runs += 1;
  sum.items += outcome.items;
  sum.pages += outcome.pages;
  sum.seconds += outcome.durationSeconds;
  if (outcome.usageUsd !== null) {
    sum.usageUsd += outcome.usageUsd;
    sum.usageKnown += 1;
  }
}

async function newestBatches(resultsDir: string): Promise<string[]> {
  const names = (await namesIn(resultsDir)).filter((name) => name.startsWith('batch='));
  const dated = await Promise.all(
    names.map(async (name) => {
      const path = join(resultsDir, name);
      return { path, at: (await stat(path).catch(() => null))?.mtimeMs ?? 0 };
    }),
  );
  return dated
    .sort((a, b) => b.at - a.at)
    .slice(0, maxBatches)
    .map(({ path }) => path);
}

async function namesIn(dir: string): Promise<string[]> {
  return readdir(dir).catch(() => []);
}

async function readOutcome(path: string): Promise<OutcomeDocument | null> {
  try {
    const value: unknown = JSON.parse((await readSmall(path, outcomeBytes)) ?? 'null');
    return isOutcome(value) ? value : null;
  } catch {
    return null;
  }
}

function isOutcome(value: unknown): value is OutcomeDocument {
  if (typeof value !== 'object' || value === null) return false;
  const { server, tool, items, pages, durationSeconds } = value as Record<string, unknown>;
  const finite = [items, pages, durationSeconds].every((figure) => Number.isFinite(figure));
  return typeof server === 'string' && typeof tool === 'string' && finite;
}
