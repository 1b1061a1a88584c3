import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeProfile, type PermissionProfile } from '../permissions/profile.ts';
import type { EgressPolicy } from './policy.ts';
import { egressPolicy } from './policy-of.ts';

const NOTHING: EgressPolicy = {
  workload: 'a1',
  allowAll: false,
  hosts: [],
  ports: [],
  inbound: [],
  runtimeGateway: false,
};
const policyOf = (permission_profile: PermissionProfile, allow_runtime_gateway = false): EgressPolicy =>
  egressPolicy({ name: 'a1', permission_profile, allow_runtime_gateway });

test.each<[string, PermissionProfile, Partial<EgressPolicy>]>([
  ['no network at all', {}, {}],
  ['an empty network', { network: {} }, {}],
  ['no outbound', { network: { inbound: {} } }, {}],
  ['an empty outbound', { network: { outbound: {} } }, {}],
  ['everything', { network: { outbound: { insecure_allow_all: true } } }, { allowAll: true }],
  [
    'no network, whatever it lists',
    { network: { mode: 'none', outbound: { insecure_allow_all: true } } },
    {},
  ],
  [
    'hosts in any spelling, twice',
    { network: { outbound: { allow_host: ['A.b', 'a.b', '.C.d', '::FFFF:10.0.0.1'] } } },
    { hosts: ['a.b', '.c.d', '10.0.0.1'] },
  ],
  ['ports twice', { network: { outbound: { allow_port: [443, 443, 80] } } }, { ports: [443, 80] }],
  [
    'everything and a list, which then names private hosts',
    { network: { outbound: { insecure_allow_all: true, allow_host: ['nas.lan'], allow_port: [445] } } },
    { allowAll: true, hosts: ['nas.lan'], ports: [445] },
  ],
  ['who may call it', { network: { inbound: { allow_host: ['Me.local'] } } }, { inbound: ['me.local'] }],
])('of %s', (_, profile, policy) => {
  expect(policyOf(profile)).toEqual({ ...NOTHING, ...policy });
});

test('opens the gateway of the engine where that is asked for, and not to what has no network', () => {
  expect(policyOf({}, true).runtimeGateway).toBe(true);
  expect(policyOf({ network: { mode: 'none' } }, true).runtimeGateway).toBe(false);
});

test('allows nothing that the profile does not list, and crosses into another process as it is', () => {
  const host = fc.oneof(fc.domain(), fc.ipV4(), fc.ipV6());
  const outbound = fc.record(
    {
      insecure_allow_all: fc.boolean(),
      allow_host: fc.array(host),
      allow_port: fc.array(fc.integer({ min: 1, max: 65_535 })),
    },
    { requiredKeys: [] },
  );
  const network = fc.record({ mode: fc.constantFrom('', 'none', 'bridge'), outbound }, { requiredKeys: [] });
  fc.assert(
    fc.property(fc.record({ network }, { requiredKeys: [] }), (value) => {
      const policy = policyOf(decodeProfile(value, 'x', '/'));
      const listed = value.network?.mode === 'none' ? undefined : value.network?.outbound;
      expect(policy.allowAll).toBe(listed?.insecure_allow_all ?? false);
      expect(policy.ports.every((port) => listed?.allow_port?.includes(port))).toBe(true);
      expect(policy.hosts.length).toBeLessThanOrEqual(new Set(listed?.allow_host).size);
      expect(JSON.parse(JSON.stringify(policy))).toEqual(policy);
    }),
  );
});
