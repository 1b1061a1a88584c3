import { defineConfig } from 'vitest/config';

// unit: beside the code, no component needed. e2e: the packed programs against real components, one file at a time
// because they share one container engine and two cores.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'scripts/**/*.test.ts'],
          setupFiles: ['scripts/left-behind.ts'],
          isolate: false,
          testTimeout: 10_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          globalSetup: ['e2e/setup.ts'],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
