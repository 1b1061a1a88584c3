import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places } from '@skep/core/files/places.ts';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readClientFile, writeClientFile } from './client-file.ts';
import { CLIENTS } from './table.ts';
import { updateClient, type UpdateDeps } from './update-client.ts';

const [cursor] = CLIENTS.filter(({ name }) => name === 'cursor');
const reachable = (name: string) => ({
  name,
  mode: 'streamable-http' as const,
  url: `http://127.0.0.1:4243/${name}/mcp`,
  otherUrls: [],
});

let home: string;
let file: string;
let deps: UpdateDeps;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-clients-'));
  file = join(home, '.cursor/mcp.json');
  await mkdir(join(home, '.cursor'));
  const platform = 'linux';
  deps = { home, platform, places: places({ env: {}, home, platform, temp: home }), uid: process.getuid?.() };
});
afterEach(() => rm(home, { recursive: true }));

test('writers at the same time lose nothing of each other', async () => {
  const names = Array.from({ length: 12 }, (_, n) => `server-${n}`);
  await Promise.all(names.map((name) => updateClient(cursor!, { there: [reachable(name)], gone: [] }, deps)));
  const { mcpServers } = JSON.parse(await readFile(file, 'utf8')) as { mcpServers: object };
  expect(Object.keys(mcpServers).toSorted()).toEqual(names.toSorted());
  await Promise.all(names.map((name) => updateClient(cursor!, { there: [], gone: [name] }, deps)));
  await expect(stat(file)).rejects.toMatchObject({ code: 'ENOENT' });
});

test('what the client has written since it was read is not overwritten', async () => {
  const missing = await readClientFile(file, deps.uid);
  await writeFile(file, '{"a": 1}');
  expect(await writeClientFile(missing, '{}')).toBe(false);
  const found = await readClientFile(file, deps.uid);
  await writeFile(file, '{"a": 12}');
  expect(await writeClientFile(found, '{}')).toBe(false);
  expect(await readFile(file, 'utf8')).toBe('{"a": 12}');
});

test('a damaged record costs nothing: an entry is known by where it leads to', async () => {
  await updateClient(cursor!, { there: [reachable('notes')], gone: [] }, deps);
  await writeFile(join(deps.places.clientsDir, 'cursor.json'), '{');
  const { foreign, text } = await updateClient(cursor!, { there: [reachable('notes')], gone: [] }, deps);
  expect(foreign).toEqual([]);
  expect(text).toBe(await readFile(file, 'utf8'));
});

test('a file of somebody else is left alone', async () => {
  await writeFile(file, '{}');
  const other = { ...deps, uid: (process.getuid?.() ?? 0) + 1 };
  await expect(updateClient(cursor!, { there: [reachable('notes')], gone: [] }, other)).rejects.toMatchObject(
    {
      code: 'client/file-left-alone',
      message: `"${file}" is left alone: it belongs to another user`,
    },
  );
});
