import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { folderSize, limitFolder } from './folder-size-limit.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skep-folder-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A clock whose timers fire when the test says so. */
function handClock() {
  const waiting: (() => void)[] = [];
  const cancelled: unknown[] = [];
  const after = (_ms: number, callback: () => void) => {
    waiting.push(callback);
    return { cancel: () => void cancelled.push(callback), restart: () => {} };
  };
  return { after, waiting, cancelled, tick: () => waiting.shift()?.() };
}

const timerSet = (clock: ReturnType<typeof handClock>) =>
  expect.poll(() => clock.waiting.length, { interval: 1 }).toBe(1);

test('adds up files at any depth', async () => {
  await mkdir(join(folder, 'a/b'), { recursive: true });
  await writeFile(join(folder, 'one'), Buffer.alloc(10));
  await writeFile(join(folder, 'a/b/two'), Buffer.alloc(5));
  expect(await folderSize(folder)).toBe(15);
  expect(await folderSize(join(folder, 'gone'))).toBe(0);
});

test('aborts once the folder holds more than allowed', async () => {
  const clock = handClock();
  const { signal } = limitFolder({ folder, url: 'https://g.test/r.git', maxBytes: 100, clock });
  await writeFile(join(folder, 'x'), Buffer.alloc(100));
  clock.tick();
  await timerSet(clock);
  expect(signal.aborted).toBe(false);
  await writeFile(join(folder, 'y'), Buffer.alloc(1));
  const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
  clock.tick();
  await aborted;
  expect(signal.reason).toMatchObject({ code: 'source/too-large' });
  expect(clock.waiting).toEqual([]);
});

test('stops looking when told so, also during a look', async () => {
  const clock = handClock();
  const limit = limitFolder({ folder, url: 'https://g.test/r.git', maxBytes: 100, clock });
  clock.tick();
  limit.stop();
  expect(await folderSize(folder)).toBe(0);
  expect(clock.waiting).toEqual([]);
  expect(clock.cancelled).toHaveLength(1);
});
