import { hash32, seeded } from '../sim/random.js';

/** What the producer submits, and what the checker may expect of it. The same seed gives the same jobs. */
export interface PlannedJob {
  readonly key: string;
  readonly batch: string;
  readonly id: string;
  readonly kind: JobKind;
  readonly via: 'bullmq' | 'stream' | 'list';
  /** The search text of its input: starts in the ledger are told apart by it. Twins share one. */
  readonly marker: string;
  readonly job: Readonly<Record<string, unknown>>;
  readonly minItems: number;
  readonly retries: number;
  readonly onEmpty: 'warn' | 'fail' | 'retry';
  readonly usageUsd: number;
  /** Cancelled, or its job removed by its producer, so long after it was submitted. */
  readonly cancelAfterMs: number | null;
  readonly removeAfterMs: number | null;
}

export const jobKinds = [
  'plain',
  'pages',
  'slow_reads',
  'empty',
  'empty_retried',
  'lag',
  'failed',
  'failed_retried',
  'too_few',
  'overdue',
  'records',
  'lost_answer',
  'double_run',
  'twin',
  'removed',
] as const;
export type JobKind = (typeof jobKinds)[number];
export type Mix = Readonly<Record<JobKind, number>>;

/** Shares in a thousand. Twins, which come in pairs, and double runs are placed by their number, unless their share is 0. */
export const usualMix: Mix = {
  plain: 400,
  pages: 150,
  slow_reads: 30,
  empty: 50,
  empty_retried: 15,
  lag: 120,
  failed: 40,
  failed_retried: 40,
  too_few: 20,
  overdue: 25,
  records: 40,
  lost_answer: 30,
  double_run: 1,
  twin: 1,
  removed: 20,
};

export const yellowPages = 'trudax/yellow-pages-us-scraper';
export const maps = 'compass/crawler-google-places';
const twinsEvery = 40;
const doublesEvery = 50;
/** Faults of a start's answer after the run was made: all the client sees is that something went wrong. */
const lostAnswers = ['drop_after', 'reset_after', 'http_500_after', 'run_id_lost', 'cut', 'not_json'];

interface Shape {
  readonly sim: Record<string, unknown>;
  readonly deadline?: number;
  readonly minItems?: number;
  readonly retries?: number;
  readonly onEmpty?: PlannedJob['onEmpty'];
  readonly records?: readonly string[];
  readonly tool?: string;
}

export function jobAt(seed: number, index: number, mix: Mix): PlannedJob {
  const random = seeded(hash32(`job ${index}`, seed));
  const isTwin = mix.twin > 0 && index % twinsEvery >= twinsEvery - 2;
  const isDouble = mix.double_run > 0 && index % doublesEvery === doublesEvery / 2;
  const kind = isTwin ? 'twin' : isDouble ? 'double_run' : pickKind(mix, random());
  const pair = Math.floor(index / twinsEvery);
  // Twins have equal inputs, so the dice of the pair shape both.
  const shape = shapeOf(kind, isTwin ? seeded(hash32(`twins ${pair}`, seed)) : random);
  const marker = isTwin ? `twins ${pair}` : `job ${index}`;
  const batch = `chaos-${'abc'[index % 3]}`;
  const id = `s${index}`;
  const { deadline = 25, minItems = 1, retries = 0, onEmpty = 'warn', records = [] } = shape;
  const tool = shape.tool ?? yellowPages;
  const sim = { readySecs: 0, usageUsd: 0.01, ...shape.sim };
  const input =
    tool === maps ? { searchStringsArray: [marker], sim } : { search: marker, location: 'Austin, TX', sim };
  const draw = random();
  const cancelled = kind !== 'removed' && kind !== 'double_run' && random() < 0.05;
  return {
    key: `${batch}.${id}`,
    batch,
    id,
    kind,
    via: draw < 0.7 ? 'bullmq' : draw < 0.85 ? 'stream' : 'list',
    marker,
    job: { tool, input, deadline, minItems, retries, onEmpty, ...(records.length > 0 ? { records } : {}) },
    minItems,
    retries,
    onEmpty,
    usageUsd: 0.01,
    // Most cancels come while a scrape is under way; some before it is taken, some after its end.
    cancelAfterMs: cancelled ? Math.round(random() ** 2 * 15_000) : null,
    removeAfterMs: kind === 'removed' ? 3_000 + Math.round(random() * 5_000) : null,
  };
}

function pickKind(mix: Mix, draw: number): JobKind {
  let left = draw * Object.values(mix).reduce((sum, share) => sum + share, 0);
  for (const kind of jobKinds) {
    left -= mix[kind];
    if (left < 0 && kind !== 'twin') return kind;
  }
  return 'plain';
}

function shapeOf(kind: JobKind, random: () => number): Shape {
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const runSecs = 1 + random() * 3;
  const ordinary = { runSecs, items: between(3, 60), itemBytes: 300 };
  switch (kind) {
    case 'plain':
      return { sim: ordinary };
    case 'pages':
      return { sim: { runSecs, items: between(60, 250), itemBytes: between(1_000, 4_000) } };
    case 'slow_reads': {
      const faults = [
        { op: 'read', kind: 'slow', ms: 900, times: 1000 },
        { op: 'record', kind: 'slow', ms: 2_500, times: 1000 },
      ];
      const records = { OUTPUT: { done: true } };
      return {
        sim: { runSecs: 1, items: between(150, 250), itemBytes: 4_000, faults, records },
        tool: maps,
        records: ['OUTPUT'],
        deadline: 30,
      };
    }
    case 'empty':
      return { sim: { runSecs, items: 0 } };
    case 'empty_retried':
      return { sim: { runSecs: 1, items: 0 }, retries: 1, onEmpty: 'retry' };
    case 'lag':
      return {
        sim: { ...ordinary, lagSecs: 1 + random() * 3.5, lagMode: pick(['zero', 'short', 'count']) },
      };
    case 'failed':
      return { sim: { ...ordinary, status: 'FAILED' } };
    case 'failed_retried':
      return { sim: { ...ordinary, status: 'FAILED' }, retries: 1 };
    case 'too_few':
      return { sim: { ...ordinary, items: 3 }, minItems: 10 };
    case 'overdue':
      return { sim: { runSecs: 600, items: 400, abortSecs: pick([0, 2]) }, deadline: between(15, 25) };
    case 'records':
      return {
        sim: { runSecs, items: 5, itemBytes: 500, records: { OUTPUT: { done: true } } },
        tool: maps,
        records: ['OUTPUT', 'MISSING'],
      };
    case 'lost_answer':
      return { sim: { ...ordinary, fault: pick(lostAnswers) } };
    case 'double_run':
      // Long enough that the second run does not end by itself before it is found.
      return { sim: { runSecs: 600, items: 20, fault: 'double_run' }, deadline: 60 };
    case 'twin':
      return { sim: { ...ordinary, ...(random() < 0.5 ? { fault: pick(lostAnswers) } : {}) } };
    case 'removed':
      return { sim: { runSecs: 600, items: 10 }, deadline: 100 };
    default:
      return kind satisfies never;
  }
}
