import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places as placesOf } from '@skep/core/files/places.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { expect, onTestFinished, test } from 'vitest';
import { writeFrontDoor, type FrontRecord } from '../supervisor/front-state.ts';
import { requireFrontDoor } from './front-door.ts';

const SELF = { pid: process.pid, started: 'supervisor' };

/** A machine whose supervisor has written this of its front door. */
async function withDoor(door: Pick<FrontRecord, 'is' | 'port' | 'why'>) {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'skep-front-')));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const places = placesOf({ env: {}, home, platform: 'linux', temp: home });
  await mkdir(places.stateDir, { recursive: true });
  await writeFrontDoor(places, { ...door, ...SELF, state: places.stateDir });
  const wake = (): Promise<void> => Promise.reject(new Error('nobody is to be woken'));
  return { places, isAlive: () => true, clock: systemClock, signal: new AbortController().signal, wake };
}

test('the open door is known by its port', async () => {
  expect(await requireFrontDoor(await withDoor({ is: 'open', port: 4243 }))).toBe(4243);
});

test.each([
  [
    { is: 'closed', port: 4243, why: 'port 4243 of the front door is taken by node (process 7)' },
    'node (process 7)',
  ],
  [{ is: 'off', port: 0 }, 'its port is set to 0'],
] as const)('one that is %j is refused with the reason', async (door, text) => {
  await expect(requireFrontDoor(await withDoor(door))).rejects.toMatchObject({
    code: 'front-door/closed',
    message: expect.stringContaining(text),
    hint: expect.stringContaining('skep config set front-port'),
  });
});

test('where no supervisor is up one is started, and its door waited for', async () => {
  const machine = await withDoor({ is: 'open', port: 4243 });
  let isUp = false;
  const resting = { ...machine, isAlive: () => isUp, wake: async () => void (isUp = true) };
  expect(await requireFrontDoor(resting)).toBe(4243);
});
