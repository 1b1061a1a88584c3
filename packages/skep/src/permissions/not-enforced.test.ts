import { expect, test } from 'vitest';
import { notEnforced } from './not-enforced.ts';
import type { PermissionProfile } from './profile.ts';

test('of an isolated workload only what privilege undoes is told', () => {
  const network = { mode: 'none', outbound: { allow_host: ['a.b'] }, inbound: { allow_host: ['a.b'] } };
  expect(notEnforced({ network }, { isolated: true })).toEqual([]);
  expect(notEnforced({ network, privileged: true }, { isolated: true })).toEqual([
    expect.stringContaining('privileged'),
  ]);
});

test.each(['host', 'mine'])('on the network %s isolation is no way out', (mode) => {
  const [phrase] = notEnforced({ network: { mode, outbound: { allow_host: ['a.b'] } } }, {});
  expect(phrase).not.toContain('--isolate-network');
});

test.each<[PermissionProfile, readonly RegExp[]]>([
  [{}, []],
  [{ network: { mode: 'none', outbound: { allow_host: ['a.b'] } } }, []],
  [{ network: { outbound: { insecure_allow_all: true } } }, []],
  [
    { network: { outbound: { allow_host: ['a.b'] } } },
    [/hosts and ports .* not enforced.*--isolate-network enforces them, skep config set isolation on/],
  ],
  [{ network: { outbound: { allow_port: [443] } } }, [/hosts and ports .* not enforced/]],
  [{ network: { outbound: { insecure_allow_all: true, allow_host: ['a.b'] } } }, []],
  [{ network: { inbound: { allow_host: ['a.b'] } } }, [/not enforced/]],
  [{ network: { mode: 'host' } }, [/network of this machine.*127\.0\.0\.1/]],
])('of %j a person is told what nothing keeps', (profile, told) => {
  const phrases = notEnforced(profile, {});
  expect(phrases).toHaveLength(told.length);
  for (const [at, pattern] of told.entries()) expect(phrases[at]).toMatch(pattern);
});
