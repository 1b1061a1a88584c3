import { expect, test } from 'vitest';
import { noRestarts, planRestart, RESTART, type RestartHistory } from './restart.ts';

function delaysOf(runs: readonly number[]): (number | undefined)[] {
  let history: RestartHistory = noRestarts;
  return runs.map((ranMs) => {
    const plan = planRestart(history, ranMs);
    if (plan) history = plan.history;
    return plan?.delayMs;
  });
}

test('the delay doubles from 5 s to 60 s, and the tenth attempt is the last', () => {
  const delays = delaysOf(Array.from({ length: 11 }, () => 100));
  expect(delays.slice(0, 5)).toEqual([5_000, 10_000, 20_000, 40_000, 60_000]);
  expect(delays[9]).toBe(60_000);
  expect(delays[10]).toBeUndefined();
});

test('a run of 30 s begins anew', () => {
  expect(delaysOf([1, 1, RESTART.stableAfterMs, 1])).toEqual([5_000, 10_000, 5_000, 10_000]);
});
