import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places, type Places } from '@skep/core/files/places.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  deleteStatus,
  isUnfinished,
  readStatus,
  shouldRun,
  statusNames,
  writeStatus,
  openStatusRecord,
  unhosted,
  type StatusWord,
  type WorkloadStatus,
} from './state.ts';

let home: string;
let where: Places;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-state-'));
  where = places({ env: {}, home, platform: 'linux', temp: home });
});
afterEach(() => rm(home, { recursive: true }));

const self = { pid: 4711, started: 'then' };
const fileOf = (name: string): string => join(where.statusesDir, `${name}.json`);

/** A record whose time passes by a second with every look. */
function recordOf(name: string): ReturnType<typeof openStatusRecord> {
  let now = Date.UTC(2026, 0, 1);
  const clock = { ...systemClock, now: () => (now += 1_000) };
  return openStatusRecord(name, { places: where, clock, self });
}

describe('the status of a workload', () => {
  test('says which process hosts it while one does, and none when it has ended', async () => {
    const record = recordOf('a1');
    for (const word of ['starting', 'running', 'unhealthy', 'stopping', 'removing'] as const) {
      await record.set(word);
      expect(await readStatus(where, 'a1')).toMatchObject({
        status: word,
        process_id: 4711,
        process_started: 'then',
      });
    }
    for (const word of ['stopped', 'error'] as const) {
      await record.set(word);
      expect(await readStatus(where, 'a1')).toMatchObject({
        status: word,
        process_id: 0,
        process_started: '',
      });
    }
  });

  test('keeps when it was made, and since when it runs', async () => {
    const record = recordOf('a1');
    await record.set('starting');
    const first = await readStatus(where, 'a1');
    expect(first).not.toHaveProperty('started_at');
    await record.set('running');
    const running = await readStatus(where, 'a1');
    await record.set('running', 'the server has not answered yet');
    const again = await readStatus(where, 'a1');
    expect(again).toMatchObject({
      created_at: first?.created_at,
      started_at: running?.started_at,
      status_context: 'the server has not answered yet',
    });
    await record.set('stopped');
    await record.set('running');
    expect((await readStatus(where, 'a1'))?.started_at).not.toBe(running?.started_at);
  });

  test('is written in the order told, and one that cannot be written holds up none after it', async () => {
    const record = recordOf('a1');
    await mkdir(join(fileOf('a1'), 'in-the-way'), { recursive: true });
    const failed = record.set('starting');
    await expect(failed).rejects.toThrow();
    await rm(fileOf('a1'), { recursive: true });
    await Promise.all([record.set('starting'), record.set('running'), record.set('stopped')]);
    expect(await readStatus(where, 'a1')).toMatchObject({ status: 'stopped' });
  });

  test('is for its user alone, and lies in a file of the name', async () => {
    await recordOf('a1').set('running');
    expect((await stat(fileOf('a1'))).mode & 0o777).toBe(0o600);
    expect(await statusNames(where)).toEqual(['a1']);
  });

  test.each(['../a1', 'a/b', '', '.', 'a b', 'a\0'])('is never a file elsewhere: %j', async (name) => {
    await expect(readStatus(where, name)).rejects.toMatchObject({ code: 'run/invalid-name' });
    await expect(recordOf(name).set('running')).rejects.toMatchObject({ code: 'run/invalid-name' });
  });

  test('is none where there is no file, and its removal is fine twice', async () => {
    expect(await readStatus(where, 'a1')).toBeUndefined();
    await deleteStatus(where, 'a1');
    await recordOf('a1').set('running');
    await deleteStatus(where, 'a1');
    await deleteStatus(where, 'a1');
    expect(await statusNames(where)).toEqual([]);
  });

  test.each(['', 'not JSON', '[]', '{}', '{"status":"dancing"}', '{"status":"running","process_id":"x"}'])(
    'that is damaged is an error with a copy for whoever looks into it: %j',
    async (text) => {
      await mkdir(where.statusesDir, { recursive: true });
      await writeFile(fileOf('a1'), text);
      await expect(readStatus(where, 'a1')).rejects.toMatchObject({
        code: 'workload/state-unreadable',
        hint: 'remove the workload with skep rm a1, then run it again',
      });
      expect(await readFile(`${fileOf('a1')}.corrupted`, 'utf8')).toBe(text);
      await deleteStatus(where, 'a1');
      expect(await readdir(where.statusesDir)).toEqual([]);
    },
  );

  test('is listed by the names that workloads can have', async () => {
    await mkdir(where.statusesDir, { recursive: true });
    for (const file of ['b2.json', 'a1.json', 'a1.json.corrupted', '.hidden.json', 'x.json', 'notes.txt']) {
      await writeFile(join(where.statusesDir, file), '');
    }
    expect(await statusNames(where)).toEqual(['a1', 'b2']);
  });

  test('that is read while it is written is the one before or the one after', async () => {
    const time = new Date(0).toISOString();
    const write = (status: StatusWord): Promise<void> =>
      writeStatus(where, 'a1', {
        status,
        created_at: time,
        updated_at: time,
        process_id: 0,
        process_started: '',
      });
    await write('stopped');
    const writing = Array.from({ length: 10 }, (_, at) => write(at % 2 === 0 ? 'error' : 'stopped'));
    const reads = await Promise.all(Array.from({ length: 20 }, () => readStatus(where, 'a1')));
    await Promise.all(writing);
    for (const read of reads) expect(['stopped', 'error']).toContain(read?.status);
  });
});

test.each<[StatusWord, string, boolean]>([
  ['starting', 'living', true],
  ['stopping', 'living', true],
  ['removing', 'living', true],
  ['running', 'living', false],
  ['stopped', 'living', false],
  ['running', 'dead', true],
  ['removing', 'dead', true],
  ['stopped', 'dead', false],
])('whoever shows what is there waits for one that is %s by a %s process: %s', (status, process, waits) => {
  const time = '2026-01-01T00:00:00.000Z';
  const one = { created_at: time, updated_at: time, process_id: 7, process_started: process };
  const statuses = new Map([['a1', { ...one, status } as WorkloadStatus]]);
  const isAlive = ({ started }: { readonly started: string }): boolean => started === 'living';
  expect(unhosted(statuses, { isAlive, alsoUnderWay: true })).toEqual(waits ? ['a1'] : []);
});

test.each<[StatusWord, boolean, boolean]>([
  ['starting', true, true],
  ['running', true, true],
  ['unhealthy', true, true],
  ['stopping', false, true],
  ['removing', false, true],
  ['stopped', false, false],
  ['error', false, false],
])('what is %s should run: %s, and has something left to be done: %s', (word, runs, unfinished) => {
  expect([shouldRun(word), isUnfinished(word)]).toEqual([runs, unfinished]);
});
