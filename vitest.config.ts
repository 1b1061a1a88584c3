import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// unit: beside the code, no component needed. e2e: the packed programs against real components. Its files bring users,
// databases and names of their own, and wait more than they work: more of them run at once than there are processors.
// What is polled for comes late where others load the processors or the disk.
const patience = { poll: { timeout: 20_000 } };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'scripts/**/*.test.ts'],
          setupFiles: ['scripts/left-behind.ts'],
          isolate: false,
          expect: patience,
          // Properties of a thousand cases, on a machine that others load.
          testTimeout: 60_000,
          maxWorkers: Math.max(4, availableParallelism()),
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          globalSetup: ['e2e/setup.ts'],
          expect: patience,
          testTimeout: 120_000,
          hookTimeout: 300_000,
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
