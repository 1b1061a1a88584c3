import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places, type Places } from '@skep/core/files/places.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { writeStatus } from './state.ts';
import { waitForOthers } from './wait-for-others.ts';

let home: string;
let where: Places;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-wait-'));
  where = places({ env: {}, home, platform: 'linux', temp: home });
});
afterEach(() => rm(home, { recursive: true }));

const OTHER = { pid: 4_000, started: '7' };

/** Waits for a workload that another process is starting; tells how often it looked. */
async function waiting(more: object = {}): Promise<number> {
  const clock = manualClock();
  const now = new Date(clock.now()).toISOString();
  await writeStatus(where, 'a1', {
    status: 'starting',
    created_at: now,
    updated_at: now,
    process_id: OTHER.pid,
    process_started: OTHER.started,
    ...more,
  });
  // The other goes after a while.
  const isAlive = (): boolean => clock.slept.length < 3;
  const around = { places: where, self: { pid: 1, started: '1' }, clock, isAlive };
  await waitForOthers('a1', { signal: new AbortController().signal }, around);
  return clock.slept.length;
}

test('what another command starts is waited for', async () => {
  expect(await waiting()).toBeGreaterThan(0);
});

test('what its process starts again after a crash is not', async () => {
  const status_context = 'the server ended with exit status 1, restarting; see skep logs a1';
  expect(await waiting({ status_context })).toBe(0);
});
