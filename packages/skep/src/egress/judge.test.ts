import { canonicalAddress, classOfAddress } from '@skep/core/fetch/address-class.ts';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalHost } from './host-name.ts';
import { NOTHING } from './gateway.fixture.ts';
import { Judge, type RuntimeGateway } from './judge.ts';
import type { EgressPolicy } from './policy.ts';

const PUBLIC = '93.184.216.34';
const GATEWAY_NAMES = ['host.docker.internal', 'gateway.docker.internal', 'host.containers.internal'];

interface Around extends Partial<EgressPolicy> {
  readonly machine?: readonly string[];
  readonly gateway?: RuntimeGateway;
}

function judgeFor({ machine = [], gateway = { addresses: [] }, ...policy }: Around): Judge {
  return new Judge({ policy: { ...NOTHING, ...policy }, machine: () => machine, runtimeGateway: gateway });
}

const isAllowed = (judge: Judge, host: string, port: number) => judge.host(host, port) === undefined;
const isReached = (judge: Judge, host: string, address: string, port = 443) =>
  judge.address(host, port, address) === undefined;

describe('the lists of a profile', () => {
  test.each([
    { what: 'no lists', policy: {}, host: 'a.example', port: 443, expected: false },
    { what: 'a host', policy: { hosts: ['a.example'] }, host: 'a.example', port: 443, expected: true },
    {
      what: 'a host, at any port',
      policy: { hosts: ['a.example'] },
      host: 'a.example',
      port: 22,
      expected: true,
    },
    {
      what: 'a host, not one below it',
      policy: { hosts: ['a.example'] },
      host: 'b.a.example',
      port: 443,
      expected: false,
    },
    {
      what: 'a host, not the one above it',
      policy: { hosts: ['b.a.example'] },
      host: 'a.example',
      port: 443,
      expected: false,
    },
    { what: 'a domain', policy: { hosts: ['.a.example'] }, host: 'a.example', port: 443, expected: true },
    {
      what: 'a domain and what is below it',
      policy: { hosts: ['.a.example'] },
      host: 'x.y.a.example',
      port: 443,
      expected: true,
    },
    {
      what: 'a domain, not one that ends alike',
      policy: { hosts: ['.a.example'] },
      host: 'evila.example',
      port: 443,
      expected: false,
    },
    { what: 'a port', policy: { ports: [443] }, host: 'a.example', port: 443, expected: true },
    { what: 'a port, no other', policy: { ports: [443] }, host: 'a.example', port: 80, expected: false },
    {
      what: 'both',
      policy: { hosts: ['a.example'], ports: [443] },
      host: 'a.example',
      port: 443,
      expected: true,
    },
    {
      what: 'both, with another port',
      policy: { hosts: ['a.example'], ports: [443] },
      host: 'a.example',
      port: 80,
      expected: false,
    },
    {
      what: 'both, with another host',
      policy: { hosts: ['a.example'], ports: [443] },
      host: 'b.example',
      port: 443,
      expected: false,
    },
    { what: 'all', policy: { allowAll: true }, host: 'a.example', port: 1, expected: true },
    {
      what: 'all, beside lists',
      policy: { allowAll: true, hosts: ['b.example'], ports: [1] },
      host: 'a.example',
      port: 2,
      expected: true,
    },
    {
      what: 'another spelling',
      policy: { hosts: ['A.Example.'] },
      host: 'a.example',
      port: 443,
      expected: true,
    },
    {
      what: 'another spelling of a domain',
      policy: { hosts: ['.Bücher.Example.'] },
      host: 'x.xn--bcher-kva.example',
      port: 443,
      expected: true,
    },
    { what: 'an address', policy: { hosts: [PUBLIC] }, host: PUBLIC, port: 443, expected: true },
    {
      what: 'an address in another spelling',
      policy: { hosts: ['0x5db8d822'] },
      host: PUBLIC,
      port: 443,
      expected: true,
    },
    {
      what: 'an address in brackets',
      policy: { hosts: ['[2606:4700:0::1]'] },
      host: '2606:4700::1',
      port: 443,
      expected: true,
    },
  ])('$what', ({ policy, host, port, expected }) => {
    expect(isAllowed(judgeFor(policy), host, port)).toBe(expected);
  });

  test('a refusal says which rule, and that it can be permitted', () => {
    expect(judgeFor({}).host('a.example', 443)).toEqual({
      reason: 'the profile allows no connection',
      permittable: true,
    });
    expect(judgeFor({ hosts: ['b.example'] }).host('a.example', 443)).toEqual({
      reason: 'the profile does not list a.example',
      permittable: true,
    });
    expect(judgeFor({ ports: [80] }).host('a.example', 443)).toEqual({
      reason: 'the profile does not list port 443',
      permittable: true,
    });
  });

  test.each(['a b', '', '..', '.1.2.3.4', 'http://a.example', 'a.example:443', '*.a.example', '.'])(
    'an entry "%s" is refused',
    (host) => {
      expect(() => judgeFor({ hosts: [host] })).toThrow(expect.objectContaining({ code: 'config/invalid' }));
    },
  );
});

describe('addresses', () => {
  test('a public one is reached for every host that is allowed', () => {
    expect(isReached(judgeFor({ hosts: ['.a.example'] }), 'x.a.example', PUBLIC)).toBe(true);
  });

  test.each([
    ['the host', ['db.example'], true],
    ['the address', ['10.0.0.5'], true],
    ['the address in another spelling', ['::ffff:10.0.0.5'], true],
    ['the domain', ['.example'], false],
    ['another address', ['10.0.0.6'], false],
  ])('a private one is reached where the profile names %s: %s %s', (_what, hosts, expected) => {
    expect(isReached(judgeFor({ hosts }), 'db.example', '10.0.0.5')).toBe(expected);
    expect(isReached(judgeFor({ hosts, allowAll: true }), 'db.example', '10.0.0.5')).toBe(expected);
    const machine = [PUBLIC.replace('93', '94')];
    const own = hosts.map((host) => (canonicalAddress(host) === '10.0.0.5' ? machine[0]! : host));
    expect(isReached(judgeFor({ hosts: own, machine }), 'db.example', machine[0]!)).toBe(expected);
  });

  test('beside everything public, a private one is reached at listed ports only', () => {
    const judge = judgeFor({ allowAll: true, hosts: ['db.example'], ports: [5432] });
    expect(isReached(judge, 'db.example', '10.0.0.5', 5432)).toBe(true);
    expect(isReached(judge, 'db.example', '10.0.0.5', 22)).toBe(false);
    expect(isReached(judge, 'db.example', PUBLIC, 22)).toBe(true);
  });

  test('a refusal names the address', () => {
    expect(judgeFor({ allowAll: true }).address('db.example', 443, '10.0.0.5')).toEqual({
      reason: 'db.example leads to 10.0.0.5, which is a private address, and the profile does not name it',
      permittable: true,
    });
    expect(judgeFor({ allowAll: true, machine: [PUBLIC] }).address(PUBLIC, 443, PUBLIC)).toEqual({
      reason: `${PUBLIC} is an address of this machine, and the profile does not name it`,
      permittable: true,
    });
    expect(judgeFor({ allowAll: true }).address('m.example', 80, '169.254.169.254')).toEqual({
      reason: 'm.example leads to 169.254.169.254, which is an address that no profile can allow',
      never: true,
    });
  });
});

describe("the runtime's gateway", () => {
  const gateway = { addresses: ['172.20.0.1', '93.184.216.1'] };
  const all = [...GATEWAY_NAMES, '172.17.0.1', ...gateway.addresses];

  test.each(all)('%s is not reached, whatever the profile lists', (host) => {
    const judge = judgeFor({ allowAll: true, hosts: [host], gateway });
    expect(judge.host(host, 80)).toEqual({
      reason: `${host} is the machine that runs it: --allow-runtime-gateway allows that`,
    });
  });

  test.each(all)('%s is reached at any port with the flag, whatever the profile lists', (host) => {
    const judge = judgeFor({ hosts: ['a.example'], ports: [443], runtimeGateway: true, gateway });
    expect(isAllowed(judge, host, 8080)).toBe(true);
    expect(isReached(judge, host, '172.20.0.1', 8080)).toBe(true);
  });

  test('another name that leads to it is refused like it', () => {
    const policy = { hosts: ['a.example'], gateway };
    expect(isReached(judgeFor(policy), 'a.example', '172.17.0.1')).toBe(false);
    expect(isReached(judgeFor(policy), 'a.example', '93.184.216.1')).toBe(false);
    expect(isReached(judgeFor({ ...policy, runtimeGateway: true }), 'a.example', '172.17.0.1')).toBe(true);
  });

  test('its names may lead to loopback, and nothing else does', () => {
    const around = {
      runtimeGateway: true,
      hosts: ['a.example'],
      gateway: { addresses: [], leadsTo: '127.0.0.1' },
    };
    const judge = judgeFor(around);
    expect(judge.leadsTo('host.docker.internal')).toBe('127.0.0.1');
    expect(isReached(judge, 'host.docker.internal', '127.0.0.1')).toBe(true);
    expect(isReached(judge, 'host.docker.internal', '127.0.0.2')).toBe(false);
    expect(judge.leadsTo('a.example')).toBeUndefined();
    expect(isReached(judge, 'a.example', '127.0.0.1')).toBe(false);
    expect(isAllowed(judge, '127.0.0.1', 80)).toBe(false);
    expect(judgeFor({ ...around, runtimeGateway: false }).leadsTo('host.docker.internal')).toBeUndefined();
  });
});

const name = fc.constantFrom('a.example', 'b.a.example', 'c.example', 'a.c.example', ...GATEWAY_NAMES);
const address = fc.oneof(
  fc.constantFrom(
    PUBLIC,
    '10.0.0.5',
    '127.0.0.1',
    '169.254.169.254',
    '172.17.0.1',
    '100.100.100.200',
    '8.8.8.8',
  ),
  fc.ipV4(),
  fc.ipV6(),
);
const host = fc.oneof(name, address).map((one) => canonicalHost(one)!);
const port = fc.constantFrom(22, 80, 443, 5432);
const policy = fc.record({
  workload: fc.constant('demo'),
  allowAll: fc.boolean(),
  hosts: fc.array(
    fc.oneof(
      host,
      name.map((one) => `.${one}`),
    ),
    { maxLength: 4 },
  ),
  ports: fc.array(port, { maxLength: 3 }),
  inbound: fc.constant([]),
  runtimeGateway: fc.boolean(),
});

/** The rules once more, in the words of docs/behaviour/run.md#isolation. */
function reference(around: EgressPolicy, asked: string, at: number): boolean {
  const isAddress = canonicalAddress(asked) !== undefined;
  if (isAddress && classOfAddress(asked) === 'never') return false;
  if (GATEWAY_NAMES.includes(asked) || asked === '172.17.0.1') return around.runtimeGateway;
  if (around.allowAll) return true;
  const { hosts, ports } = around;
  if (hosts.length + ports.length === 0) return false;
  const matches = (one: string) =>
    one.startsWith('.') ? !isAddress && (asked === one.slice(1) || asked.endsWith(one)) : asked === one;
  return (hosts.length === 0 || hosts.some(matches)) && (ports.length === 0 || ports.includes(at));
}

test('for every policy, host and port the first rule that matches decides', () => {
  fc.assert(
    fc.property(policy, host, port, (around, asked, at) => {
      expect(isAllowed(judgeFor(around), asked, at)).toBe(reference(around, asked, at));
    }),
    { numRuns: 2_000 },
  );
});

test('no policy reaches an address that nobody may reach, and a private one only by a name in the profile', () => {
  fc.assert(
    fc.property(policy, host, address, port, (around, asked, found, at) => {
      const reached = isReached(judgeFor(around), asked, found, at);
      const kind = classOfAddress(found);
      if (kind === 'never') expect(reached).toBe(false);
      else if (kind === 'private' && reached && !around.runtimeGateway)
        expect([asked, canonicalAddress(found)].some((one) => around.hosts.includes(one!))).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});
