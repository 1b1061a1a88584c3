import { expect, test } from 'vitest';
import { notEnforced } from './not-enforced.ts';
import type { PermissionProfile } from './profile.ts';

const SHARED = 'slirp4netns is not installed';

test('of an isolated workload only what privilege undoes is told', () => {
  const network = { mode: 'none', outbound: { allow_host: ['a.b'] }, inbound: { allow_host: ['a.b'] } };
  expect(notEnforced({ network }, { isolated: true, sharesNetwork: SHARED })).toEqual([]);
  expect(notEnforced({ network, privileged: true }, { isolated: true })).toEqual([
    expect.stringContaining('privileged'),
  ]);
});

test.each(['host', 'mine'])('on the network %s isolation is no way out', (mode) => {
  const [phrase] = notEnforced({ network: { mode, outbound: { allow_host: ['a.b'] } } }, {});
  expect(phrase).not.toContain('--isolate-network');
});

test.each<[PermissionProfile, string | undefined, readonly RegExp[]]>([
  [{}, undefined, []],
  [{ network: { mode: 'none', outbound: { allow_host: ['a.b'] } } }, SHARED, []],
  [{ network: { outbound: { insecure_allow_all: true } } }, undefined, []],
  [
    { network: { outbound: { allow_host: ['a.b'] } } },
    undefined,
    [/hosts and ports .* not enforced.*--isolate-network enforces them, skep config set isolation on/],
  ],
  [{ network: { outbound: { allow_port: [443] } } }, undefined, [/hosts and ports .* not enforced/]],
  [{ network: { outbound: { insecure_allow_all: true, allow_host: ['a.b'] } } }, undefined, []],
  [{ network: { inbound: { allow_host: ['a.b'] } } }, undefined, [/not enforced/]],
  [{}, SHARED, [/network of this machine because slirp4netns is not installed.*127\.0\.0\.1/]],
  [{ network: { mode: 'host' } }, undefined, [/network of this machine.*127\.0\.0\.1/]],
])('of %j with %s a person is told what nothing keeps', (profile, sharesNetwork, told) => {
  const phrases = notEnforced(profile, { sharesNetwork });
  expect(phrases).toHaveLength(told.length);
  for (const [at, pattern] of told.entries()) expect(phrases[at]).toMatch(pattern);
});
