import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { places as placesOf, type Places } from '@skep/core/files/places.ts';
import { expect, onTestFinished, test } from 'vitest';
import { dataText, forgetKept, keptNames, noteKept, readKept } from './kept-data.ts';

const sandbox = { kind: 'sandbox', id: 's', endpoint: 'bwrap' } as const;
const engine = { kind: 'docker', id: 'd', endpoint: 'sock' } as const;

async function home(): Promise<Places> {
  const directory = await mkdtemp(path.join(tmpdir(), 'skep-kept-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return placesOf({ env: {}, home: directory, platform: 'linux', temp: directory });
}

test('data is known by name on every runtime that it was on, until the last is forgotten', async () => {
  const places = await home();
  expect(await readKept(places, 'a1')).toEqual([]);
  await noteKept(places, 'a1', { runtime: sandbox, where: ['/x'] });
  await noteKept(places, 'a1', { runtime: engine, where: ['volume y'] });
  await noteKept(places, 'a1', { runtime: sandbox, where: ['/z'] });
  expect(await dataText(places, 'a1')).toBe('volume y, /z');
  expect(await keptNames(places)).toEqual(['a1']);
  await forgetKept(places, 'a1', engine);
  await forgetKept(places, 'a1', sandbox);
  expect(await keptNames(places)).toEqual([]);
});

test('a record whose writing was cut short does not keep a name that is forgotten', async () => {
  const places = await home();
  await noteKept(places, 'a1', { runtime: engine, where: ['volume y'] });
  const left = `.kept.json.${randomUUID()}.tmp`;
  await writeFile(path.join(places.keptDir, 'a1', left), '{');
  await forgetKept(places, 'a1', engine);
  expect(await keptNames(places)).toEqual([]);
});

test('its size is that of its files, no link followed', async () => {
  const places = await home();
  const data = path.join(places.keptDir, 'a1', 'data');
  await mkdir(path.join(data, 'sub'), { recursive: true });
  await writeFile(path.join(data, 'sub', 'file'), 'x'.repeat(1500));
  await symlink('/', path.join(data, 'root'));
  await noteKept(places, 'a1', { runtime: sandbox, where: [data] });
  expect(await dataText(places, 'a1')).toBe(`${data} (1.50 kB)`);
});

test.each(['', '{', '{"at":3}', '{"at":[{"where":[7]}]}'])(
  'a damaged record %j still leads to the directory',
  async (text) => {
    const places = await home();
    await mkdir(path.join(places.keptDir, 'a1'), { recursive: true });
    await writeFile(path.join(places.keptDir, 'a1', 'kept.json'), text);
    expect(await readKept(places, 'a1')).toEqual([{ where: [path.join(places.keptDir, 'a1')] }]);
    await forgetKept(places, 'a1', undefined);
    expect(await readKept(places, 'a1')).toEqual([]);
  },
);
