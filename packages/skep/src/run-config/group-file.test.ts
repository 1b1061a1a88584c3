import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import { places as placesOf, type Places } from '@skep/core/files/places.ts';
import { isGroupName } from '../settings/group-name.ts';
import { createGroup, groupNames, joiningGroup, readGroup, removeGroup, updateGroup } from './group-file.ts';

async function home(): Promise<Places> {
  const path = await mkdtemp(join(tmpdir(), 'skep-groups-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return placesOf({ env: {}, home: path, platform: 'linux', temp: path });
}

describe('names of groups', () => {
  test.each(['team', 'a', 'data science', 'a_b-c 9', '-', 'x'.repeat(100)])('%j is one', (name) => {
    expect(isGroupName(name)).toBe(true);
  });

  test.each([
    '',
    ' ',
    'Team',
    'a  b',
    ' a',
    'a ',
    'a/b',
    '..',
    'a.b',
    'a\0b',
    'ä',
    'a\tb',
    'a\nb',
    'x'.repeat(101),
  ])('%j is none', (name) => {
    expect(isGroupName(name)).toBe(false);
  });

  test('no name leads out of the directory of groups', () => {
    fc.assert(
      fc.property(anyText(), (name) => {
        if (isGroupName(name)) expect(name).toMatch(/^[a-z0-9_ -]+$/);
      }),
    );
  });
});

describe('group files', () => {
  test('default is there without a file, and nothing is written for it', async () => {
    const places = await home();
    expect(await groupNames(places)).toEqual(['default']);
    expect(await readGroup(places, 'default')).toMatchObject({ registered_clients: [] });
    await expect(createGroup(places, 'default')).rejects.toMatchObject({ code: 'group/exists' });
    expect(await readdir(places.groupsDir).catch(() => [])).toEqual([]);
  });

  test('of many that make one of the same name at once, exactly one does', async () => {
    const places = await home();
    const made = await Promise.allSettled(Array.from({ length: 12 }, () => createGroup(places, 'team')));
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const one of made)
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'group/exists' });
    expect(await groupNames(places)).toEqual(['default', 'team']);
  });

  test('a file is readable by its user only, and two homes never see each other', async () => {
    const [one, other] = [await home(), await home()];
    await createGroup(one, 'team');
    expect((await stat(join(one.groupsDir, 'team.json'))).mode & 0o777).toBe(0o600);
    expect(await groupNames(other)).toEqual(['default']);
    await expect(readGroup(other, 'team')).rejects.toMatchObject({ code: 'group/not-found' });
  });

  test('changes of many at once are all kept, with the members that this release does not act on', async () => {
    const places = await home();
    await mkdir(places.groupsDir, { recursive: true });
    await writeFile(
      join(places.groupsDir, 'team.json'),
      '{"name":"team","registered_clients":null,"skills":["x"]}',
    );
    const clients = ['a', 'b', 'c', 'd', 'e'];
    const add = (client: string): Promise<void> =>
      updateGroup(places, 'team', (group) => ({
        ...group,
        registered_clients: [...group.registered_clients, client],
      }));
    await Promise.all(clients.map(add));
    const { registered_clients: kept, rest } = await readGroup(places, 'team');
    expect(kept.toSorted()).toEqual(clients);
    expect(rest).toEqual({ skills: ['x'] });
  });

  test.each([
    ['', 'it is empty'],
    ['{"name":', 'not valid JSON'],
    ['[]', 'must be an object'],
    ['{"name":3}', '"name": must be text'],
    ['{"name":"team","registered_clients":"vscode"}', '"registered_clients": must be a list'],
    ['{"name":"team","registered_clients":[1]}', '"registered_clients.0": must be text'],
    [`{"name":"team","x":"${'y'.repeat(1024 * 1024)}"}`, 'is larger than'],
  ])('a damaged file %.40j fails with a line, and is never overwritten', async (text, said) => {
    const places = await home();
    const path = join(places.groupsDir, 'team.json');
    await mkdir(places.groupsDir, { recursive: true });
    await writeFile(path, text);
    const refusal = { code: 'group/unreadable', message: expect.stringContaining(said) };
    await expect(readGroup(places, 'team')).rejects.toMatchObject(refusal);
    await expect(updateGroup(places, 'team', (group) => group)).rejects.toMatchObject(refusal);
    await expect(removeGroup(places, 'team', async () => {})).rejects.toMatchObject(refusal);
    await expect(createGroup(places, 'team')).rejects.toMatchObject({ code: 'group/exists' });
    expect(await readFile(path, 'utf8')).toBe(text);
    expect(await groupNames(places)).toEqual(['default', 'team']);
  });

  test('what joins a group and what removes it take turns', async () => {
    const places = await home();
    await createGroup(places, 'team');
    const order: string[] = [];
    const { promise: began, resolve: begin } = Promise.withResolvers<void>();
    const joining = joiningGroup(places, 'team', async () => {
      begin();
      await new Promise((resolve) => setImmediate(resolve));
      order.push('joined');
    });
    await began;
    await removeGroup(places, 'team', async () => void order.push('emptied'));
    await joining;
    expect(order).toEqual(['joined', 'emptied']);
    await expect(joiningGroup(places, 'team', async () => {})).rejects.toMatchObject({
      code: 'group/not-found',
    });
  });

  test('a misspelt name is told the one that is meant', async () => {
    const places = await home();
    await createGroup(places, 'production');
    await expect(readGroup(places, 'prodution')).rejects.toMatchObject({
      hint: 'did you mean "production"?',
    });
    await expect(readGroup(places, '../etc')).rejects.toMatchObject({ code: 'group/not-found' });
  });
});
