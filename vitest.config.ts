import { globSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

const E2E = 'e2e/**/*.test.ts';
/** They share one container engine, and look for what is left on it. */
const ON_THE_ENGINE = globSync(E2E).filter((file) =>
  /component\('(?:private-)?engine'\)/.test(readFileSync(file, 'utf8')),
);
const endToEnd = {
  globalSetup: ['e2e/setup.ts'],
  testTimeout: 120_000,
  hookTimeout: 300_000,
};

// unit: beside the code, no component needed. e2e and e2e-engine: the packed programs against real components. Those on
// the engine run one file at a time; the others bring databases, servers and users of their own, and two run at once.
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
          ...endToEnd,
          name: 'e2e',
          include: [E2E],
          exclude: ON_THE_ENGINE,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...endToEnd,
          name: 'e2e-engine',
          include: ON_THE_ENGINE,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
