import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseMount, parseVolume } from './mount-declaration.ts';

describe('--volume', () => {
  test.each([
    ['/data:/data', { source: '/data', target: '/data', readOnly: false }],
    ['/data:/in/:ro', { source: '/data', target: '/in', readOnly: true }],
    ['./x:/in', { source: '/home/me/x', target: '/in', readOnly: false }],
    ['../x:/a/../b', { source: '/home/x', target: '/b', readOnly: false }],
    ['/a b:/c d', { source: '/a b', target: '/c d', readOnly: false }],
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
  ])('refuses %j', (text) => {
    expect(() => parseVolume(text, '/')).toThrow(expect.objectContaining({ code: 'run/invalid-volume' }));
  });
  test('any text gives absolute paths on both sides or is refused', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        let mount;
        try {
          mount = parseVolume(text, '/cwd');
        } catch (error) {
          expect(error).toMatchObject({ code: 'run/invalid-volume' });
          return;
        }
        expect(mount.source.startsWith('/')).toBe(true);
        expect(mount.target.startsWith('/')).toBe(true);
        expect(mount.target).not.toMatch(/(^|\/)\.\.(\/|$)/);
      }),
    );
  });
});

test('a profile entry with one path means the same path inside', () => {
  expect(parseMount('/srv/x', true, '/')).toEqual({ source: '/srv/x', target: '/srv/x', readOnly: true });
});
