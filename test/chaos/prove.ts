import type { Findings } from './findings.js';
import type { Guard } from './guards.js';
import { type Mix, usualMix } from './jobs.js';
import { type Rates, usualRates } from './plan.js';
import { type ChaosOptions, runChaos, usualOptions } from './run.js';

const none = Object.fromEntries(Object.keys(usualMix).map((kind) => [kind, 0])) as unknown as Mix;
const calm: Rates = {
  ...usualRates,
  harness: Object.fromEntries(Object.keys(usualRates.harness).map((kind) => [kind, 0])) as Rates['harness'],
  answers: 0,
};
const faster = { lockMs: 4_000, stalledEveryMs: 1_000, certainAfterMs: 25_000, sendWithinMs: 10_000 };

/** Short runs in which much happens of what each guard is against, and little else. */
function sharpened(guard: Guard): Partial<ChaosOptions> {
  switch (guard) {
    case 'intent':
      // Killed while answers of starts are awaited.
      return {
        mix: { ...none, plain: 500, lost_answer: 500 },
        rates: { ...calm, harness: { ...calm.harness, sigkill: 10 } },
      };
    case 'fixed-ids':
      return { mix: { ...none, plain: 1000 }, rates: calm, repeatHandOns: 0.5 };
    case 'page-plan':
      // Killed between a page and its checkpoint, and gone on with by a worker of another page size.
      return {
        mix: { ...none, pages: 1000 },
        rates: { ...calm, harness: { ...calm.harness, sigkill: 12 } },
      };
    case 'lock-check':
      // Frozen in the middle of reading, longer than the lock, and awake while the successor still reads.
      return {
        mix: { ...none, slow_reads: 1000 },
        rates: { ...calm, harness: { ...calm.harness, sigstop: 10 }, stopMs: [6_000, 9_000] },
      };
    case 'second-read':
      return { mix: { ...none, lag: 1000 }, rates: calm };
    default:
      return guard satisfies never;
  }
}

/** The breaches that each guard is against: only these count as having found its absence. */
const breachesOf: Readonly<Record<Guard, readonly (keyof Findings)[]>> = {
  intent: ['duplicateStarts'],
  'fixed-ids': ['duplicateStarts'],
  'page-plan': ['missingItems', 'doubledItems'],
  'lock-check': ['wrongDocuments', 'missingItems', 'doubledItems', 'duplicateStarts'],
  'second-read': ['missingItems'],
};

/**
 * Proves the checker: with each guard switched off it has to find what that guard is against. Prints a line of JSON a guard.
 * @returns the exit code
 */
export async function prove(
  which: readonly Guard[],
  seed: number,
  say: (line: string) => void,
): Promise<number> {
  let code = 0;
  for (const guard of which) {
    const { verdict } = await runChaos({
      ...usualOptions(seed, 1),
      timing: faster,
      restMs: 120_000,
      everyKind: false,
      scrapes: 150,
      say,
      keep: false,
      without: guard,
      ...sharpened(guard),
    });
    const counts = Object.fromEntries(breachesOf[guard].map((name) => [name, verdict.findings[name]]));
    const found = Object.values(counts).some((count) => count > 0);
    if (!found) code = 1;
    const first = verdict.breaches.find((breach) =>
      breachesOf[guard].some((name) => breach.startsWith(name)),
    );
    process.stdout.write(`${JSON.stringify({ without: guard, found, ...counts, first: first ?? null })}\n`);
  }
  return code;
}
