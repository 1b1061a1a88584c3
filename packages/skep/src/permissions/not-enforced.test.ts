import { expect, test } from 'vitest';
import { notEnforced } from './not-enforced.ts';
import type { PermissionProfile } from './profile.ts';

const SHARED = 'slirp4netns is not installed';

test.each<[PermissionProfile, string | undefined, readonly RegExp[]]>([
  [{}, undefined, []],
  [{ network: { mode: 'none', outbound: { allow_host: ['a.b'] } } }, SHARED, []],
  [{ network: { outbound: { insecure_allow_all: true } } }, undefined, []],
  [{ network: { outbound: { allow_host: ['a.b'] } } }, undefined, [/hosts and ports .* not enforced/]],
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
