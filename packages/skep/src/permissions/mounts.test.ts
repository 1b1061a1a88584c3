import { chmod, mkdir, mkdtemp, realpath, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test, afterEach, beforeEach } from 'vitest';
import {
  isNamedVolume,
  parseMount,
  parseVolume,
  checkMountSources,
  checkSources,
  mountSources,
  openToOthers,
} from './mounts.ts';

describe('--volume', () => {
  test.each([
    ['/data:/data', { source: '/data', target: '/data', readOnly: false }],
    ['/data:/in/:ro', { source: '/data', target: '/in', readOnly: true }],
    ['./x:/in', { source: '/home/me/x', target: '/in', readOnly: false }],
    ['../x:/a/../b', { source: '/home/x', target: '/b', readOnly: false }],
    ['/a b:/c d', { source: '/a b', target: '/c d', readOnly: false }],
    ['volume://cache:/data', { volume: 'cache', target: '/data', readOnly: false }],
    ['VOLUME://a.b_c-1:/x/../data/:ro', { volume: 'a.b_c-1', target: '/data', readOnly: true }],
  ])('%s', (text, mount) => {
    expect(parseVolume(text, '/home/me')).toEqual(mount);
  });
  test.each([
    '/data',
    '/data:',
    ':/data',
    '/a:/b:rw',
    '/a:/b:/c',
    '/a:b',
    '/a;rm:/b',
    '/a:/b$x',
    '/a\0:/b',
    '',
    'volume://',
    'volume://cache',
    'volume://cache:',
    'volume://cache:data',
    'volume://cache:/',
    'volume://cache:/data:rw',
    'volume://cache:C:\\data',
    'volume://:/data',
    'volume://..:/data',
    'volume://../kept:/data',
    'volume://a/b:/data',
    'volume://-x:/data',
    'volume://a b:/data',
    'volume://a$b:/data',
    'volume://a\0:/data',
    'volume://ä:/data',
    `volume://${'x'.repeat(65)}:/data`,
    'secret://cache:/data',
    's3://bucket/cache:/data',
    'C:\\data',
    'C:\\data:/x:rw',
    'C:/data:/x:/y',
    '/data:C:\\x',
  ])('refuses %j', (text) => {
    expect(() => parseVolume(text, '/')).toThrow(expect.objectContaining({ code: 'run/invalid-volume' }));
  });
  test('any text gives absolute paths on both sides or is refused', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((one) => `volume://${one}:/data`),
        ),
        (text) => {
          let mount;
          try {
            mount = parseVolume(text, '/cwd');
          } catch (error) {
            expect(error).toMatchObject({ code: 'run/invalid-volume' });
            return;
          }
          if (isNamedVolume(mount)) expect(mount.volume).toMatch(/^[A-Za-z0-9][\w.-]*$/);
          else expect(mount.source.startsWith('/')).toBe(true);
          expect(mount.target.startsWith('/')).toBe(true);
          expect(mount.target).not.toMatch(/(^|\/)\.\.(\/|$)/);
        },
      ),
    );
  });
});

describe('an entry of a profile', () => {
  test.each([
    ['/srv/x', { source: '/srv/x', target: '/srv/x' }],
    ['/srv/x/../y/', { source: '/srv/y', target: '/srv/y' }],
    ['xy:/data', { source: '/home/me/xy', target: '/data' }],
    ['xy:data/./in', { source: '/home/me/xy', target: '/data/in' }],
    // Where drives have letters it is absolute.
    ['C:\\x y:/data', { source: resolve('/home/me', 'C:\\x y'), target: '/data' }],
    ['C:/x:/data/', { source: resolve('/home/me', 'C:/x'), target: '/data' }],
    ['volume://notes:/data', { volume: 'notes', target: '/data' }],
  ])('%s', (text, mount) => {
    expect(parseMount(text, true, '/home/me')).toEqual({ ...mount, readOnly: true });
  });
  test.each([
    '',
    ':/data',
    '/data:',
    '/a:/b:ro',
    '/a:/b:/c',
    'C:\\x',
    'C:/x:/data:ro',
    'C:/x:D:/data',
    '/a;b:/c',
    '/a&b:/c',
    '/a|b:/c',
    '/a`b:/c',
    '/a:/$b',
    '/a\0:/b',
    's3://bucket:/data',
  ])('refuses %j', (text) => {
    expect(() => parseMount(text, true, '/')).toThrow(
      expect.objectContaining({ code: 'run/invalid-volume' }),
    );
  });
});

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
  test('that is there and cannot be looked at is not taken for one that is not', async () => {
    const loop = join(home, 'loop');
    await symlink('loop', loop);
    await expect(checkSources([{ source: loop, target: '/x', readOnly: true }])).rejects.toMatchObject({
      code: 'run/invalid-volume',
      message: `failed to access volume source path "${loop}"`,
    });
  });

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

test('what is writable and can be entered by other users is told from what only its user can get to', async () => {
  const at = (source: string, readOnly = false) => ({ source, target: '/data', readOnly });
  await chmod(data, 0o777);
  await chmod(home, 0o700);
  await symlink('/usr', join(home, 'linked'));
  const given = [at('/usr'), at('/usr', true), at(data), at(join(home, 'linked')), at(join(home, 'absent'))];
  expect(await openToOthers(given)).toEqual(['/usr', join(home, 'linked')]);
});
