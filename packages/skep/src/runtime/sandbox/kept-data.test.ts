import { chmod, chown, lstat, mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import { environmentIn } from './environment.fixture.ts';
import { dataMounts, holdsData, removeData, removeEmptyData, writtenDirectories } from './kept-data.ts';
import { removeFiles } from './own-directories.ts';

let directory: string;
let environment: RuntimeEnvironment;
let home: string;
let kept: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-kept-'));
  environment = environmentIn(directory);
  home = path.join(directory, 'home');
  kept = path.join(environment.dataDir, 'kept', 'a1');
  await mkdir(home);
});
afterEach(() => removeFiles(directory));

const mounts = (data: readonly string[] = ['/data']) =>
  dataMounts({ environment, spec: { name: 'a1', data }, home, user: undefined });

describe('volumes that servers share', () => {
  const notes = (name: string) => ({
    name,
    volumes: [{ volume: 'notes', target: `/${name}`, readOnly: name === 'b1' }],
  });
  const shared = () => path.join(environment.dataDir, 'volumes', 'notes');

  test('are one directory for all of them, below one that only this user enters', async () => {
    for (const name of ['a1', 'b1']) {
      expect(await dataMounts({ environment, spec: notes(name), home, user: undefined })).toEqual([
        { source: shared(), target: `/${name}`, readOnly: name === 'b1' },
      ]);
    }
    expect((await lstat(path.dirname(shared()))).mode & 0o777).toBe(0o700);
  });

  test('go when nothing is in them, stay when something is, and are removed by name', async () => {
    await dataMounts({ environment, spec: notes('a1'), home, user: undefined });
    expect(await holdsData(environment, 'a1', ['notes'])).toBe(true);
    await removeEmptyData(environment, 'a1', ['notes']);
    expect(await holdsData(environment, 'a1', ['notes'])).toBe(false);
    await dataMounts({ environment, spec: notes('a1'), home, user: undefined });
    await writeFile(path.join(shared(), 'one'), 'x');
    await removeEmptyData(environment, 'a1', ['notes']);
    expect(await readFile(path.join(shared(), 'one'), 'utf8')).toBe('x');
    await removeData(environment, 'a1');
    expect(await holdsData(environment, 'a1', ['notes'])).toBe(true);
    await removeData(environment, 'a1', ['notes']);
    expect(await readdir(environment.dataDir)).toEqual([]);
  });

  test('that are counted as its own are those that it may write', () => {
    expect(writtenDirectories(environment, { ...notes('a1'), data: ['/data'] })).toEqual([
      path.join(kept, 'data'),
      shared(),
    ]);
    expect(writtenDirectories(environment, notes('b1'))).toEqual([]);
  });

  test('are removed to the end where a killed removal stopped', async () => {
    const left = path.join(path.dirname(shared()), '.1-1-random');
    await mkdir(path.join(left, 'rest'), { recursive: true });
    expect(await holdsData(environment, 'a1', ['notes'])).toBe(true);
    await removeData(environment, 'a1');
    expect(await readdir(left)).toEqual(['rest']);
    await removeData(environment, 'a1', ['notes']);
    expect(await readdir(environment.dataDir)).toEqual([]);
  });

  test.skipIf(process.getuid?.() !== 0)(
    'are open to every user, also after a start that was killed',
    async () => {
      await mkdir(shared(), { recursive: true, mode: 0o700 });
      const user = { uid: 60_706, gid: 60_706 };
      await dataMounts({ environment, spec: notes('a1'), home, user });
      expect((await lstat(shared())).mode & 0o777).toBe(0o777);
      // A person has closed it to some.
      await chmod(shared(), 0o770);
      await dataMounts({ environment, spec: notes('a1'), home, user });
      expect((await lstat(shared())).mode & 0o777).toBe(0o770);
    },
  );

  test('are no link that somebody has put in their place', async () => {
    await mkdir(path.dirname(shared()), { recursive: true });
    await symlink(directory, shared());
    await expect(dataMounts({ environment, spec: notes('a1'), home, user: undefined })).rejects.toMatchObject(
      {
        code: 'runtime/start-failed',
      },
    );
  });
});

describe('what a server keeps', () => {
  test('lies in one directory that only this user enters, at /data and in its home', async () => {
    const source = path.join(kept, 'data');
    expect(await mounts()).toEqual([
      { source, target: '/data', readOnly: false },
      { source, target: '/home/skep/.local/share', readOnly: false },
    ]);
    expect((await lstat(kept)).mode & 0o777).toBe(0o700);
    expect((await lstat(path.join(home, '.local/share'))).isDirectory()).toBe(true);
  });

  test('is found again by the next start, two at once included', async () => {
    await Promise.all([mounts(), mounts()]);
    await writeFile(path.join(kept, 'data', 'graph'), 'x');
    await mounts();
    expect(await readFile(path.join(kept, 'data', 'graph'), 'utf8')).toBe('x');
  });

  test('is mounted where the server has put no link, and no directory that it has shut', async () => {
    const outside = path.join(directory, 'outside');
    await mkdir(outside);
    await symlink(outside, path.join(home, '.local'));
    await mounts();
    expect(await readdir(outside)).toEqual([]);
    await chmod(path.join(home, '.local'), 0);
    await mounts();
    expect((await lstat(path.join(home, '.local/share'))).isDirectory()).toBe(true);
  });

  test.each(['a1', 'a1/data'])('is refused where something else lies at %s', async (place) => {
    const at = path.join(environment.dataDir, 'kept', place);
    const outside = path.join(directory, 'outside');
    await mkdir(outside);
    await mkdir(path.dirname(at), { recursive: true, mode: 0o700 });
    await symlink(outside, at);
    await expect(mounts()).rejects.toThrow(expect.objectContaining({ code: 'runtime/start-failed' }));
    expect(await readdir(outside)).toEqual([]);
  });

  test.skipIf(process.getuid?.() !== 0)('is refused in a directory of another user', async () => {
    await mkdir(kept, { recursive: true });
    await chown(kept, 12_345, 12_345);
    await expect(mounts()).rejects.toThrow(expect.objectContaining({ code: 'runtime/start-failed' }));
  });

  test('is nothing until something is written, and leaves nothing then', async () => {
    await mounts(['/data', '/var/lib/x']);
    expect(await holdsData(environment, 'a1')).toBe(false);
    await removeEmptyData(environment, 'a1');
    await expect(lstat(kept)).rejects.toThrow('ENOENT');
  });
});

describe('to remove it', () => {
  test('follows no link, and takes what the server has shut', async () => {
    await mounts();
    const outside = path.join(directory, 'outside');
    await mkdir(outside);
    await writeFile(path.join(outside, 'mine'), 'x');
    await symlink(outside, path.join(kept, 'data', 'link'));
    await mkdir(path.join(kept, 'data', 'shut', 'deep'), { recursive: true });
    await chmod(path.join(kept, 'data', 'shut'), 0);
    await removeEmptyData(environment, 'a1');
    expect(await holdsData(environment, 'a1')).toBe(true);
    await removeData(environment, 'a1');
    await expect(lstat(kept)).rejects.toThrow('ENOENT');
    expect(await readdir(outside)).toEqual(['mine']);
  });

  test('goes on where a killed removal stopped', async () => {
    // What it had renamed, and not removed yet.
    await mkdir(path.join(kept, '.1-1-random', 'rest'), { recursive: true });
    expect(await holdsData(environment, 'a1')).toBe(true);
    await removeData(environment, 'a1');
    expect(await holdsData(environment, 'a1')).toBe(false);
  });
});
