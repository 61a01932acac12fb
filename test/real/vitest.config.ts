import { defineConfig } from 'vitest/config';

/** The servers are processes of 100 to 260 MB, so two files of tests at a time. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
    // Runs take seconds; a line for each would be no summary.
    slowTestThreshold: 30_000,
  },
});
