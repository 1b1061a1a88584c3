import { expect, test } from 'vitest';
import { NO_NAMESPACES, ownNetworkOf, type NetworkTools } from './own-network.ts';

const TOOLS: NetworkTools = {
  unshare: '/usr/bin/unshare',
  nsenter: '/usr/bin/nsenter',
  ip: '/usr/sbin/ip',
  slirp: { program: '/usr/bin/slirp4netns' },
};
const WITHOUT_SLIRP = { ...TOOLS, slirp: { missing: 'slirp4netns is not installed' } };
const isolation = {
  workload: 'a',
  allowAll: false,
  hosts: [],
  ports: [],
  inbound: [],
  runtimeGateway: false,
};

test.each(['none', 'host'])('the network %s is none of its own', (network) => {
  expect(ownNetworkOf({ name: 'a', network }, TOOLS)).toBeUndefined();
  expect(ownNetworkOf({ name: 'a', network }, 'ip (iproute2) is not installed')).toBeUndefined();
});

test('an open network leads everywhere with slirp4netns, and without it to public hosts through a gateway', () => {
  const wanted = { name: 'a', network: 'bridge' };
  expect(ownNetworkOf(wanted, TOOLS)).toMatchObject({ kind: 'connected', slirp: '/usr/bin/slirp4netns' });
  expect(ownNetworkOf(wanted, WITHOUT_SLIRP)).toMatchObject({
    kind: 'gated',
    isolated: false,
    policy: { allowAll: true, hosts: [], runtimeGateway: false },
  });
});

test('an isolated network has a gateway with its own policy, whatever there is', () => {
  for (const tools of [TOOLS, WITHOUT_SLIRP]) {
    const found = ownNetworkOf({ name: 'a', network: 'bridge', isolation }, tools);
    expect(found).toMatchObject({ kind: 'gated', isolated: true, policy: isolation });
  }
});

test.each([
  ['ip (iproute2) is not installed', /^install it; or give --network host/],
  [NO_NAMESPACES, /^allow it \(sysctl .*\); or give --network host/],
])('where none can be made, because %s, a workload never gets that of the machine', (why, hint) => {
  expect(() => ownNetworkOf({ name: 'a', network: 'bridge' }, why)).toThrow(
    expect.objectContaining({
      code: 'runtime/sandbox-unavailable',
      message: expect.stringContaining(why),
      hint: expect.stringMatching(hint),
    }),
  );
  expect(() => ownNetworkOf({ name: 'a', network: 'bridge', isolation }, why)).toThrow(
    expect.objectContaining({ hint: expect.not.stringContaining('--network host') }),
  );
});
