import { describe, expect, test } from 'vitest';
import { repeatable } from './serve.ts';

describe('work that is repeated on request', () => {
  test('runs one at a time, and once more for any number of requests meanwhile', async () => {
    const runs: PromiseWithResolvers<void>[] = [];
    let running = 0;
    const repeated = repeatable(async () => {
      running += 1;
      expect(running).toBe(1);
      const run = Promise.withResolvers<void>();
      runs.push(run);
      await run.promise;
      running -= 1;
    });
    const ends = [repeated(), repeated(), repeated()];
    expect(runs).toHaveLength(1);
    runs[0]?.resolve();
    while (runs.length < 2) await Promise.resolve();
    runs[1]?.resolve();
    await Promise.all(ends);
    expect(runs).toHaveLength(2);
    const later = repeated();
    expect(runs).toHaveLength(3);
    runs[2]?.resolve();
    await later;
  });
});
