import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { places as placesOf, type Places } from '@skep/core/files/places.ts';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { forgetPorts, keepPort, keptPorts } from './kept-ports.ts';

let home: string;
let places: Places;
let file: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-ports-'));
  places = placesOf({ env: {}, home, platform: 'linux', temp: home });
  file = join(places.keptDir, '.addresses.json');
});
afterEach(() => rm(home, { recursive: true }));

test('the last port of each name is remembered, for its user only', async () => {
  await Promise.all([keepPort(places, 'a1', 40_001), keepPort(places, 'b1', 40_002)]);
  await keepPort(places, 'a1', 40_003);
  expect(await keptPorts(places)).toEqual(
    new Map([
      ['b1', 40_002],
      ['a1', 40_003],
    ]),
  );
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test('a port that is remembered already is not written again', async () => {
  await keepPort(places, 'a1', 40_001);
  await writeFile(file, '{"a1":40001} ');
  await keepPort(places, 'a1', 40_001);
  expect(await readFile(file, 'utf8')).toBe('{"a1":40001} ');
});

test.each([
  ['nothing', ''],
  ['a list', '[1]'],
  ['no ports', '{"a1":0,"b1":65536,"c1":"4","d1":1.5,"e1":null}'],
  ['no names', '{"../x":40001,"__proto__":40001,"":40001}'],
  ['a large file', `{"a1":${' '.repeat(300_000)}40001}`],
])('what is damaged (%s) counts for nothing, and is written over', async (_, text) => {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
  expect(await keptPorts(places)).toEqual(new Map());
  await keepPort(places, 'a1', 40_001);
  expect(await keptPorts(places)).toEqual(new Map([['a1', 40_001]]));
});

test('of too many names those are forgotten that were started longest ago', async () => {
  await mkdir(dirname(file), { recursive: true });
  const many = Array.from({ length: 1_000 }, (_, at) => [`name-${at}`, 10_000 + at]);
  await writeFile(file, JSON.stringify(Object.fromEntries(many)));
  await keepPort(places, 'a1', 40_001);
  const kept = await keptPorts(places);
  expect([kept.size, kept.has('name-0'), kept.get('name-1'), kept.get('a1')]).toEqual([
    1_000,
    false,
    10_001,
    40_001,
  ]);
});

test('one can be forgotten', async () => {
  await keepPort(places, 'a1', 40_001);
  await keepPort(places, 'b1', 40_002);
  await keepPort(places, 'a1', undefined);
  await keepPort(places, 'c1', undefined);
  expect(await keptPorts(places)).toEqual(new Map([['b1', 40_002]]));
});

test('all can be forgotten', async () => {
  await keepPort(places, 'a1', 40_001);
  await forgetPorts(places);
  await forgetPorts(places);
  expect(await keptPorts(places)).toEqual(new Map());
});
