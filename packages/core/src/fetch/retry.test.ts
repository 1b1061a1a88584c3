import { systemClock } from '../time/clock.ts';
import { describe, expect, test } from 'vitest';
import { parseRetryAfter, withRetry, type RetryOptions, type Verdict } from './retry.ts';

function harness(verdict: Verdict, failures: number, options: Partial<RetryOptions> = {}) {
  const slept: number[] = [];
  let calls = 0;
  const done = withRetry(
    () => {
      calls += 1;
      return calls <= failures ? Promise.reject(new Error(`try ${calls}`)) : Promise.resolve('done');
    },
    () => verdict,
    {
      tries: 3,
      baseMs: 100,
      capMs: 1_000,
      random: () => 0,
      sleep: (ms) => {
        slept.push(ms);
        return Promise.resolve();
      },
      ...options,
    },
  );
  return { done, slept, calls: () => calls };
}

test('tries again with growing delays and then succeeds', async () => {
  const { done, slept } = harness({ retry: true }, 2);
  await expect(done).resolves.toBe('done');
  expect(slept).toEqual([50, 100]);
});

test('jitter at most doubles a delay', async () => {
  const { done, slept } = harness({ retry: true }, 2, { random: () => 0.999_999 });
  await done;
  expect(slept.map(Math.round)).toEqual([100, 200]);
});

test('gives up after the last try with its error', async () => {
  const { done, calls } = harness({ retry: true }, 9);
  await expect(done).rejects.toThrow('try 3');
  expect(calls()).toBe(3);
});

test('a final failure is not tried again', async () => {
  const { done, calls } = harness({ retry: false }, 9);
  await expect(done).rejects.toThrow('try 1');
  expect(calls()).toBe(1);
});

test('waits as long as the server asks', async () => {
  const { done, slept } = harness({ retry: true, afterMs: 700 }, 1);
  await done;
  expect(slept).toEqual([700]);
});

test('a server that asks for too long a wait ends the tries', async () => {
  const { done, calls } = harness({ retry: true, afterMs: 1_001 }, 9);
  await expect(done).rejects.toThrow('try 1');
  expect(calls()).toBe(1);
});

test('an aborted wait fails with the reason of the signal', async () => {
  const abort = new AbortController();
  const { done } = harness({ retry: true }, 9, {
    baseMs: 1e6,
    capMs: 1e6,
    sleep: systemClock.sleep,
    signal: abort.signal,
  });
  abort.abort(new Error('stopped'));
  await expect(done).rejects.toThrow(/stopped|try 1/u);
  await expect(systemClock.sleep(1e6, abort.signal)).rejects.toThrow('stopped');
});

describe('Retry-After', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  test.each([
    ['120', 120_000],
    ['Thu, 01 Jan 2026 00:00:05 GMT', 5_000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['99999999999999999999', 1e23],
    ['soon', undefined],
    [undefined, undefined],
  ])('%s', (header, expected) => {
    expect(parseRetryAfter(header, now)).toBe(expected);
  });
});
