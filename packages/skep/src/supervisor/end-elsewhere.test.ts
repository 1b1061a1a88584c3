import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places, type Places } from '@skep/core/files/places.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { endElsewhere } from './end-elsewhere.ts';
import { writeStatus } from './state.ts';

let home: string;
let where: Places;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-elsewhere-'));
  where = places({ env: {}, home, platform: 'linux', temp: home });
});
afterEach(() => rm(home, { recursive: true }));

const OTHER = { pid: 4_000, started: '7' };

/** Ends a workload that another process hosts, which takes so many milliseconds; answers with whom it asked to end. */
async function ending(lastsMs: number): Promise<readonly number[]> {
  const standing = manualClock();
  const clock = { ...standing, sleep: async (ms: number) => standing.pass(ms) };
  const [begun, now] = [clock.elapsed(), new Date(clock.now()).toISOString()];
  const hosted = { process_id: OTHER.pid, process_started: OTHER.started };
  await writeStatus(where, 'a1', { status: 'running', created_at: now, updated_at: now, ...hosted });
  const asked: number[] = [];
  await endElsewhere('a1', {
    places: where,
    self: { pid: 1, started: '1' },
    clock,
    isAlive: () => clock.elapsed() - begun < lastsMs,
    terminate: (pid) => void asked.push(pid),
  });
  return asked;
}

test('a process that hosts a workload is asked to end, and waited for', async () => {
  expect(await ending(30_000)).toEqual([OTHER.pid]);
});

test('nobody is asked where none hosts it', async () => {
  expect(await ending(0)).toEqual([]);
});

test('one that does not end, because its engine does not answer, is told with what to look at', async () => {
  await expect(ending(Infinity)).rejects.toMatchObject({
    code: 'file/locked',
    message: '"a1" is still hosted by process 4000, which was asked to end 40 s ago',
    hint: 'see with skep runtime check whether what "a1" runs on answers, then try again',
  });
});
