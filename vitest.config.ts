import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/real/**', '**/node_modules/**'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    pool: 'forks',
    // Most of the time is waiting (runs, verified ends, locks), not computing.
    maxWorkers: 4,
    // Concurrent tests mostly wait: for runs to end, and for the five seconds before an end of a dataset is believed.
    maxConcurrency: 20,
  },
});
