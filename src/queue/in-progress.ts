import type { Attempt } from '../run/attempt.js';
import { splitJobKey } from '../scrape/identity.js';
import type { AttemptStore } from './attempt-store.js';
import { type Keys, parseStageJobId, type Stage, stageQueue } from './names.js';
import type { ScriptedRedis } from './scripts.js';

/** Where a scrape under way stands: its run goes on, its run is over and its items are read, it waits for its start. */
export const progressStates = ['running', 'reading', 'waiting'] as const;
export type ProgressState = (typeof progressStates)[number];

const stagesOf: Readonly<Record<ProgressState, readonly Stage[]>> = {
  running: ['poll', 'abort'],
  reading: ['pages'],
  waiting: ['start'],
};

/** In a worker's hands, then what is due, then what is due later. */
const places = ['active', 'wait', 'prioritized', 'delayed'] as const;

interface Segment {
  readonly key: string;
  readonly list: boolean;
  readonly server: string;
  readonly size: number;
}

export interface InProgress {
  readonly batch: string;
  readonly id: string;
  readonly server: string;
  /** null: it only waits, so that no more is known than its place. */
  readonly attempt: Attempt | null;
}

export interface InProgressPage {
  readonly scrapes: readonly InProgress[];
  /** Jobs in all segments at this moment. */
  readonly total: number;
  /** null: that was the last. */
  readonly next: string | null;
}

/**
 * Scrapes under way, `limit` at a time, from the stage queues: a page costs the same with a hundred runs in flight and with
 * 100,000. What starts or ends between two pages may be missing from both, or be in both.
 *
 * @param cursor `next` of the page before, null for the first
 * @returns null when the cursor is none of ours
 */
export async function listInProgress(
  deps: { readonly redis: ScriptedRedis; readonly keys: Keys; readonly store: AttemptStore },
  options: {
    readonly servers: readonly string[];
    readonly state: ProgressState;
    readonly cursor: string | null;
    readonly limit: number;
  },
): Promise<InProgressPage | null> {
  const segments = await sizes(deps, options.servers, stagesOf[options.state]);
  const total = segments.reduce((sum, { size }) => sum + size, 0);
  const offset = options.cursor === null ? 0 : readCursor(options.cursor);
  if (offset === null) return null;
  const ids = await read(deps.redis, segments, offset, options.limit);
  const seen = new Map<string, string>();
  for (const { jobId, server } of ids) {
    const scrape = parseStageJobId(jobId)?.scrape;
    if (scrape !== undefined) seen.set(scrape, server);
  }
  const attempts = await deps.store.glance([...seen.keys()]);
  const scrapes = [...seen].flatMap(([scrape, server], index) => {
    const named = splitJobKey(scrape);
    return named === null ? [] : [{ ...named, server, attempt: attempts[index] ?? null }];
  });
  const end = offset + options.limit;
  return { scrapes, total, next: end < total ? String(end) : null };
}

/** How many scrapes are in each state, by server; one round trip. */
export async function countInProgress(
  deps: { readonly redis: ScriptedRedis; readonly keys: Keys },
  servers: readonly string[],
): Promise<Record<ProgressState, number>> {
  const counts = await Promise.all(
    progressStates.map(async (state) => {
      const segments = await sizes(deps, servers, stagesOf[state]);
      return [state, segments.reduce((sum, { size }) => sum + size, 0)] as const;
    }),
  );
  return Object.fromEntries(counts) as Record<ProgressState, number>;
}

function readCursor(cursor: string): number | null {
  return /^\d{1,9}$/.test(cursor) ? Number(cursor) : null;
}

async function sizes(
  { redis, keys }: { readonly redis: ScriptedRedis; readonly keys: Keys },
  servers: readonly string[],
  stages: readonly Stage[],
): Promise<Segment[]> {
  const segments = servers.flatMap((server) =>
    stages.flatMap((stage) =>
      places.map((place) => ({
        key: `${keys.queue(stageQueue(stage, server))}:${place}`,
        list: place === 'active' || place === 'wait',
        server,
      })),
    ),
  );
  const pipeline = redis.pipeline();
  for (const { key, list } of segments) list ? pipeline.llen(key) : pipeline.zcard(key);
  const replies = (await pipeline.exec()) ?? [];
  return segments.map((segment, index) => {
    const [error, size] = replies[index] ?? [null, 0];
    if (error) throw error;
    return { ...segment, size: Number(size) };
  });
}

async function read(
  redis: ScriptedRedis,
  segments: readonly Segment[],
  offset: number,
  limit: number,
): Promise<{ jobId: string; server: string }[]> {
  const ids: { jobId: string; server: string }[] = [];
  let skip = offset;
  for (const { key, list, server, size } of segments) {
    if (ids.length >= limit) break;
    if (skip >= size) {
      skip -= size;
      continue;
    }
    const last = skip + limit - ids.length - 1;
    const found = list
      ? await redis.lrange(key, skip, last)
      : await redis.zrange(key, String(skip), String(last));
    ids.push(...found.map((jobId) => ({ jobId, server })));
    skip = 0;
  }
  return ids;
}
