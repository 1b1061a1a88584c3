import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { expect, test } from 'vitest';
import { collectAll, collectWhenIdle } from './collect-when-idle.ts';

/** How often it collects while the process works that share of each stretch of time. */
async function collections(...shares: readonly number[]): Promise<number> {
  const ending = new AbortController();
  const left = [...shares];
  let collected = 0;
  await collectWhenIdle({
    clock: {
      ...manualClock(),
      sleep: () => (left.length > 0 ? Promise.resolve() : Promise.reject(new Error('over'))),
    },
    signal: ending.signal,
    load: () => left.shift() ?? 0,
    collect: () => void (collected += 1),
  });
  return collected;
}

test('what a burst took is given back once, when it is over', async () => {
  expect(await collections(0.9, 0.8, 0.001, 0.001, 0.001)).toBe(1);
  expect(await collections(0.9, 0.001, 0.9, 0.001)).toBe(2);
});

test('nothing is collected while there is work, or where there was none', async () => {
  expect(await collections(0.9, 0.05, 0.9, 0.05)).toBe(0);
  expect(await collections(0.001, 0.03, 0.001)).toBe(0);
});

test('what nobody holds is collected, in a process that was started without flags', () => {
  const dropped = new WeakRef(Array.from({ length: 100 }, (_, index) => ({ index })));
  return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
    collectAll();
    expect(dropped.deref()).toBeUndefined();
  });
});
