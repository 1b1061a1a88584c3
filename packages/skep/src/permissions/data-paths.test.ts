import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { chooseDataPaths, isDataPath, partOf } from './data-paths.ts';

const choose = (wishes: Partial<Parameters<typeof chooseDataPaths>[0]>) =>
  chooseDataPaths({ isPackage: false, declared: [], mounts: [], ...wishes });

test('packages keep /data, images what is declared', () => {
  expect(choose({ isPackage: true, declared: ['/app/dist'] })).toEqual(['/data']);
  expect(choose({ declared: ['/app/dist', '/var/lib/x/'] })).toEqual(['/app/dist', '/var/lib/x']);
  expect(choose({})).toBeUndefined();
});

test.each([
  '/',
  '/etc',
  '/proc/1',
  '/usr',
  '/usr/bin',
  '/usr/lib64/x',
  '/usr/local',
  '/usr/local/sbin',
  '/app',
  '/home',
  '/../x',
  '/a//b',
  'data',
  '/a b',
  '/a:b',
  `/${'a'.repeat(300)}`,
])('nothing is kept at %s, whoever declares it', (path) => {
  expect(isDataPath(path)).toBe(false);
  expect(choose({ declared: [path] })).toBeUndefined();
});

test('what a person mounts there decides, and paths never lie within each other', () => {
  expect(choose({ isPackage: true, mounts: [{ target: '/data' }] })).toBeUndefined();
  expect(choose({ isPackage: true, mounts: [{ target: '/data/sub' }] })).toBeUndefined();
  expect(choose({ isPackage: true, mounts: [{ target: '/database' }] })).toEqual(['/data']);
  expect(choose({ declared: ['/a', '/a/b', '/a'] })).toEqual(['/a']);
});

test('a hostile list is cut', () => {
  const declared = Array.from({ length: 1000 }, (_, at) => `/v${at}`);
  expect(choose({ declared })).toHaveLength(8);
});

test('two paths never share a place, and its name is plain', () => {
  const path = fc.array(fc.stringMatching(/^[a-c._-]{1,3}$/), { minLength: 1, maxLength: 3 });
  const paths = path.map((parts) => `/${parts.join('/')}`).filter(isDataPath);
  fc.assert(
    fc.property(paths, paths, (one, other) => {
      expect(partOf(one)).toMatch(/^[A-Za-z0-9-]{1,50}$/);
      expect(partOf(one) === partOf(other)).toBe(one === other);
    }),
  );
});
