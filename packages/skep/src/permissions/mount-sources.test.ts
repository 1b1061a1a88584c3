import { mkdir, mkdtemp, realpath, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkMountSources, mountSources } from './mount-sources.ts';

let home: string;
let data: string;
beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'skep-sources-')));
  data = join(home, 'data');
  await mkdir(data);
  await mkdir(join(home, 'keys'));
});
afterEach(() => rm(home, { recursive: true }));

const mounts = () => [{ source: data, target: '/data', readOnly: true }];

describe('the source of a mount', () => {
  test('that was swapped for a link to something else is not mounted', async () => {
    const granted = await mountSources(mounts());
    await rm(data, { recursive: true });
    await symlink(join(home, 'keys'), data);
    await expect(checkMountSources('a1', mounts(), granted)).rejects.toMatchObject({
      code: 'run/not-granted',
      message: expect.stringContaining(`leads to "${join(home, 'keys')}" now`),
      hint: expect.stringContaining('skep rm a1'),
    });
  });

  test('is followed on its whole way', async () => {
    const way = join(home, 'way');
    await symlink(home, way);
    const through = [{ source: join(way, 'data'), target: '/data', readOnly: true }];
    const granted = await mountSources(through);
    expect(granted).toEqual({ [join(way, 'data')]: data });
    await rm(way);
    await mkdir(join(home, 'other/data'), { recursive: true });
    await symlink(join(home, 'other'), way);
    await expect(checkMountSources('a1', through, granted)).rejects.toMatchObject({
      code: 'run/not-granted',
    });
  });

  test('that has gone is not waited for', async () => {
    const granted = await mountSources(mounts());
    await rm(data, { recursive: true });
    await expect(checkMountSources('a1', mounts(), granted)).rejects.toMatchObject({
      message: expect.stringContaining('not to be found any more'),
    });
  });

  test('that is another directory of that name is fine: the path is what was granted', async () => {
    const granted = await mountSources(mounts());
    await rename(data, join(home, 'old'));
    await mkdir(data);
    await checkMountSources('a1', mounts(), granted);
  });

  test('that nobody could look at when it was granted is left to the runtime', async () => {
    const absent = [{ source: join(home, 'absent'), target: '/x', readOnly: true }];
    expect(await mountSources(absent)).toEqual({});
    await checkMountSources('a1', absent, {});
  });
});
