import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // One more than the cores that the suite is meant for: many tests wait, for leases, browsers and processes.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Processes, signals and browsers race on a busy machine: in CI a test gets two more tries, and the log names it.
    retry: process.env.CI ? 2 : 0,
  },
});
