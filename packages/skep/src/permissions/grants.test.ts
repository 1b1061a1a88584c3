import { describe, expect, test } from 'vitest';
import { grantsOf } from './grants.ts';
import type { PermissionProfile } from './profile.ts';

describe('what a profile gives away', () => {
  test.each<[PermissionProfile, readonly string[]]>([
    [{}, []],
    [{ network: { outbound: { insecure_allow_all: true } } }, []],
    [{ network: { mode: 'bridge' } }, []],
    [{ network: { mode: 'none' } }, []],
    [{ privileged: false }, []],
    [{ read: ['/etc/shadow:/x'] }, ['read "/etc/shadow" (as "/x")']],
    [{ write: ['/data'] }, ['write "/data"']],
    [{ write: ['notes:/notes'] }, ['write "/home/ann/notes" (as "/notes")']],
    [
      { read: ['volume://a:/a'], write: ['volume://b:/b'] },
      [
        'read the volume "a" that servers share (as "/a")',
        'write the volume "b" that servers share (as "/b")',
      ],
    ],
    [{ privileged: true }, ['run privileged, with all rights of the engine']],
    [{ network: { mode: 'host' } }, ['use the network "host"']],
    [{ network: { mode: 'container:db' } }, ['use the network "container:db"']],
  ])('%j', (profile, grants) => {
    expect(grantsOf(profile, '/home/ann')).toEqual(grants);
  });
  test('of hosts is what only isolation closes', () => {
    const network = { outbound: { allow_host: ['10.0.0.5', 'db', '.corp', 'fd00::1', 'a.example.com'] } };
    expect(grantsOf({ network }, '/', true)).toEqual(
      ['10.0.0.5', 'db', '.corp', 'fd00::1'].map((host) => `connect to the private host "${host}"`),
    );
    expect(grantsOf({ network: { ...network, mode: 'none' } }, '/', true)).toEqual([]);
  });
});
