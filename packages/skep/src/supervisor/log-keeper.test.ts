import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { places } from '@skep/core/files/places.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { earlierPart, followFile } from '../runtime/sandbox/log-file.ts';
import { capLog, keepLogsSmall } from './log-keeper.ts';

const home = mkdtempSync(path.join(tmpdir(), 'skep-logs-'));
afterAll(() => rmSync(home, { recursive: true }));
const at = (...parts: string[]): string => path.join(home, ...parts);

test('a log over the limit becomes the one earlier generation, and its writer goes on', async () => {
  const file = at('a.log');
  const writer = openSync(file, 'a');
  writeSync(writer, 'first\n');
  await capLog(file, 100);
  expect(readFileSync(file, 'utf8')).toBe('first\n');
  writeSync(writer, 'x'.repeat(100));
  await capLog(file, 100);
  writeSync(writer, 'after\n');
  expect([readFileSync(file, 'utf8'), readFileSync(`${file}.1`, 'utf8')]).toEqual([
    'after\n',
    'x'.repeat(100),
  ]);
  await capLog(at('no-such.log'), 0);
});

test('a log that was shut is capped all the same', async () => {
  const file = at('shut.log');
  writeFileSync(file, 'long');
  chmodSync(file, 0);
  await capLog(file, 1);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('who follows a log goes on after it was cut', async () => {
  const file = at('followed.log');
  writeFileSync(file, 'before\n');
  const ending = new AbortController();
  let seen = '';
  const request = { follow: true, signal: ending.signal, over: () => Promise.resolve(false), pollMs: 10 };
  for await (const bytes of followFile(file, request)) {
    seen += bytes.toString();
    if (seen === 'before\n') {
      await capLog(file, 0);
      appendFileSync(file, 'new\n');
    } else ending.abort();
  }
  expect(seen).toBe('before\nnew\n');
});

test('logs of proxies and of the supervisor are kept small', async () => {
  const where = places({ env: { XDG_DATA_HOME: at('data') }, home, platform: 'linux', temp: home });
  const files = ['logs/time.log', 'logs/_supervisor.log', 'sandbox/time/workload.json'];
  for (const file of files) {
    const target = path.join(where.dataDir, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, Buffer.alloc(10 * 1024 * 1024 + 1));
  }
  const ending = new AbortController();
  let waits = 0;
  const clock = {
    ...manualClock(),
    sleep: async () => {
      waits += 1;
      if (waits < 2) return;
      ending.abort();
      throw ending.signal.reason;
    },
  };
  await keepLogsSmall({ places: where, clock, signal: ending.signal, log: silentLog });
  const sizes = files.map((file) => readFileSync(path.join(where.dataDir, file)).length);
  expect(sizes).toEqual([0, 0, 10 * 1024 * 1024 + 1]);
});

test('of a log that grew far over the limit only the end is kept, and its last lines can still be read', async () => {
  const file = at('burst.log');
  writeFileSync(file, `${'x'.repeat(99)}\n`.repeat(1000));
  expect(await capLog(file, 1000)).toBe(true);
  expect(statSync(`${file}.1`).size).toBe(1000);
  expect(statSync(file).size).toBe(0);
  appendFileSync(file, 'new\n');
  expect(String(await earlierPart(file, 3))).toBe(`${'x'.repeat(99)}\n`.repeat(2));
  expect(await earlierPart(file, 1)).toBeUndefined();
  expect(await capLog(file, 1000)).toBe(false);
});
