import { expect, test } from 'vitest';
import { systemClock, utcTime } from './clock.ts';
import { manualClock } from './doubles/manual-clock.ts';

test('a sleep ends with the reason of the signal that ended it', async () => {
  const ending = new AbortController();
  const slept = systemClock.sleep(60_000, ending.signal);
  ending.abort(new Error('enough'));
  await expect(slept).rejects.toThrow('enough');
});

test('a timer of more than 24 days does not run at once', async () => {
  let ran = false;
  const timer = systemClock.after(2 ** 31, () => (ran = true));
  await systemClock.sleep(2);
  timer.cancel();
  expect(ran).toBe(false);
});

test('a sleep of more than 24 days does not end at once', async () => {
  const ending = new AbortController();
  let hasEnded = false;
  const slept = systemClock.sleep(2 ** 31, ending.signal).then(() => (hasEnded = true));
  await systemClock.sleep(5);
  expect(hasEnded).toBe(false);
  ending.abort(new Error('enough'));
  await expect(slept).rejects.toThrow('enough');
});

test('a time is told in UTC', () => {
  expect(utcTime({ now: () => 1_500 })).toBe('1970-01-01T00:00:01.500Z');
});

test('on a manual clock timers run in the order in which they are due, at their time', () => {
  const clock = manualClock(0);
  const ran: [string, number][] = [];
  const note = (what: string) => () => void ran.push([what, clock.now()]);
  clock.after(20, note('late'));
  clock.every(8, note('again'));
  clock.after(10, () => clock.after(1, note('nested')));
  const cancelled = clock.after(5, note('never'));
  cancelled.cancel();
  cancelled.restart();
  expect([clock.waiting, clock.nextIn]).toEqual([3, 8]);
  clock.pass(20);
  expect(ran).toEqual([
    ['again', 8],
    ['nested', 11],
    ['again', 16],
    ['late', 20],
  ]);
  expect([clock.now(), clock.waiting, clock.nextIn]).toEqual([20, 1, 4]);
});

test('a timer that is begun anew runs later, and once more after it ran', () => {
  const clock = manualClock(0);
  const ran: number[] = [];
  const timer = clock.after(10, () => ran.push(clock.now()));
  clock.pass(9);
  timer.restart();
  clock.pass(9);
  expect(ran).toEqual([]);
  clock.pass(1);
  timer.restart();
  clock.pass(10);
  expect(ran).toEqual([19, 29]);
});
