import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places } from '@skep/core/files/places.ts';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { holdPreparing, isBeingMade, lockName, whileNothingIsMade } from './name-lock.ts';

let home: string;
let wait: { places: ReturnType<typeof places>; signal: AbortSignal };
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-names-'));
  wait = {
    places: places({ env: {}, home, platform: 'linux', temp: home }),
    signal: new AbortController().signal,
  };
});
afterEach(() => rm(home, { recursive: true }));

const nothing = async (): Promise<void> => {};

test('different names are made at the same time, one name by one command', async () => {
  const one = await lockName('a1', wait);
  const other = await lockName('b1', wait);
  await expect(lockName('a1', wait)).rejects.toMatchObject({ code: 'file/locked' });
  expect(await isBeingMade('a1', wait.places)).toBe(true);
  one.release();
  expect(await isBeingMade('a1', wait.places)).toBe(false);
  other.release();
});

test('nothing is cleared up while something is made', async () => {
  const lock = await lockName('a1', wait);
  expect(await whileNothingIsMade(wait, () => Promise.reject(new Error('ran')))).toBe(false);
  lock.release();
  const preparing = await holdPreparing(wait);
  expect(await whileNothingIsMade(wait, nothing)).toBe(false);
  preparing.release();
  expect(await whileNothingIsMade(wait, nothing)).toBe(true);
});

test('what wants to be made waits until clearing up is done', async () => {
  const order: string[] = [];
  let made: Promise<unknown> = Promise.resolve();
  await whileNothingIsMade(wait, async () => {
    made = lockName('a1', wait).then((lock) => {
      order.push('made');
      lock.release();
    });
    await isBeingMade('b1', wait.places);
    order.push('cleared');
  });
  await made;
  expect(order).toEqual(['cleared', 'made']);
});

test.each(['supervisor', 'supervisor-start', 'preparing', 'run.x'])(
  'a workload may be called %s',
  async (name) => {
    const lock = await lockName(name, wait);
    await expect(lockName(name, wait)).rejects.toMatchObject({ code: 'file/locked' });
    lock.release();
  },
);
