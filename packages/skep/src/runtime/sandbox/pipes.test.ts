import { mkdtemp, rm } from 'node:fs/promises';
import { closeSync, constants, openSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { holdPipes, isHeld, makePipes, untilReleased } from './pipes.ts';
import { workloadPlaces, type WorkloadPlaces } from './places.ts';

let places: WorkloadPlaces;
beforeEach(async () => {
  places = workloadPlaces(await mkdtemp(path.join(tmpdir(), 'skep-life-')));
  await makePipes(places, false);
});
afterEach(() => rm(places.directory, { recursive: true }));

const never = new AbortController().signal;

test('who waits for the end of a workload hears when the last holder lets go of its pipe', async () => {
  const holders = [openSync(places.life, constants.O_RDWR), openSync(places.life, constants.O_RDWR)];
  let over = false;
  const waiting = untilReleased(places.life, never).then(() => void (over = true));
  closeSync(holders[0] ?? -1);
  expect(over).toBe(false);
  closeSync(holders[1] ?? -1);
  await waiting;
});

test('nobody waits for a workload that is over already, or that has no such pipe', async () => {
  await untilReleased(places.life, never);
  await untilReleased(workloadPlaces('/does/not/exist').life, never);
});

test('the wait ends with its signal', async () => {
  const holder = openSync(places.life, constants.O_RDWR);
  try {
    const ending = new AbortController();
    const waiting = untilReleased(places.life, ending.signal);
    ending.abort();
    await expect(waiting).rejects.toThrow();
  } finally {
    closeSync(holder);
  }
});

test('pipes that are there stay, and those that are missing are made', async () => {
  const [held, before] = [openSync(places.life, constants.O_RDWR), statSync(places.life)];
  try {
    await makePipes(places, true);
    expect(statSync(places.life).ino).toBe(before.ino);
    expect(isHeld(places.life)).toBe(true);
    expect(statSync(places.stdin).isFIFO()).toBe(true);
  } finally {
    closeSync(held);
  }
});

test('a pipe is let go of when the other one cannot be opened', async () => {
  const speaking = workloadPlaces(await mkdtemp(path.join(tmpdir(), 'skep-life-')));
  try {
    await makePipes(speaking, true);
    await rm(speaking.stdout);
    expect(() => holdPipes(speaking)).toThrow('ENOENT');
    const open = readdirSync('/proc/self/fd').map((fd) => ifThere(() => readlinkSync(`/proc/self/fd/${fd}`)));
    expect(open).not.toContain(speaking.stdin);
  } finally {
    await rm(speaking.directory, { recursive: true });
  }
});

/** The descriptor that lists them is gone. */
function ifThere(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
