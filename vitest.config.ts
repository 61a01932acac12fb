import { defineConfig } from 'vitest/config';

/** Tests of one part at a time: they leave nothing behind, so that files of one worker can share what they import. */
const units = [
  'config',
  'deploy',
  'docs',
  'fuzz',
  'grafana',
  'mcp',
  'metrics',
  'run',
  'scrape',
  'security',
  'simulator',
];
/** Real processes killed, frozen and cut off: minutes of waiting, run by `npm run test:guarantees`. */
const guarantees = ['test/guarantees/**/*.test.ts', 'test/kill/**/*.test.ts'];
/** The page and its API, in a real Chromium in front of real workers, run by `npm run test:page`. */
const page = ['test/page/**/*.test.ts'];

const shared = {
  testTimeout: 90_000,
  hookTimeout: 60_000,
  pool: 'forks',
  // Most of the time is waiting (runs, verified ends, locks), not computing.
  maxWorkers: 5,
  // Concurrent tests mostly wait: for runs to end, and for the five seconds before an end of a dataset is believed.
  maxConcurrency: 20,
} as const;

const unitFiles = [...units.map((unit) => `test/${unit}/**/*.test.ts`), 'test/*.test.ts'];

export default defineConfig({
  test: {
    maxWorkers: shared.maxWorkers,
    projects: [
      { test: { ...shared, name: 'unit', include: unitFiles, isolate: false } },
      {
        test: {
          ...shared,
          name: 'whole',
          include: ['test/**/*.test.ts'],
          exclude: ['test/real/**', '**/node_modules/**', ...unitFiles, ...guarantees, ...page],
        },
      },
      { test: { ...shared, name: 'page', include: page } },
      {
        test: {
          ...shared,
          name: 'guarantees',
          include: guarantees,
          // Whole fleets in one process each, with spans of seconds: more at once would be late on a small machine.
          maxWorkers: 2,
          maxConcurrency: 4,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
