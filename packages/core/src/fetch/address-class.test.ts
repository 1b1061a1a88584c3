import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressBytes, canonicalAddress, classOfAddress } from './address-class.ts';

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['127.1', '127.0.0.1'],
  ['0x7f.1', '127.0.0.1'],
  ['0177.0.0.1', '127.0.0.1'],
  ['2130706433', '127.0.0.1'],
  ['::ffff:7f00:1', '127.0.0.1'],
  ['::ffff:127.0.0.1', '127.0.0.1'],
  ['2606:4700:0000::0:1111', '2606:4700::1111'],
  ['::1.1.1.1', '::101:101'],
  ['64:ff9b::10.0.0.1', '64:ff9b::a00:1'],
  ['FD00:EC2::254', 'fd00:ec2::254'],
])('%s is %s', (text, address) => {
  expect(canonicalAddress(text)).toBe(address);
});

test.each([
  '',
  'a.example',
  '1.2.3.4.5',
  '256.1.1.1',
  'fe80::1%eth0',
  '[::1]',
  '1.2.3.4/8',
  '::1.2.3.256',
  '::ffff:300.1.1.1',
])('"%s" is no address', (text) => {
  expect(canonicalAddress(text)).toBeUndefined();
  expect(classOfAddress(text)).toBe('never');
});

test.each([
  '1.1.1.1',
  '93.184.216.34',
  '172.32.0.1',
  '2606:4700::1111',
  '::ffff:1.1.1.1',
  '64:ff9b::1.1.1.1',
])('%s is public', (address) => {
  expect(classOfAddress(address)).toBe('public');
});

describe('addresses of some network only are private', () => {
  test.each([
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '100.64.0.1',
    '198.18.0.1',
    '192.0.2.1',
    '240.0.0.1',
    'fc00::1',
    'fd12::1',
    'fec0::1',
    '2001:db8::1',
    '3fff::1',
    '5f00::1',
    '4000::1',
    '64:ff9b::10.0.0.1',
    '::ffff:192.168.0.1',
  ])('%s', (address) => {
    expect(classOfAddress(address)).toBe('private');
  });
});

describe('no profile can allow', () => {
  test.each([
    ['loopback', '127.0.0.1'],
    ['loopback', '127.9.9.9'],
    ['loopback', '::1'],
    ['loopback', '::ffff:127.0.0.1'],
    ['an unspecified address', '0.0.0.0'],
    ['an unspecified address', '0.1.2.3'],
    ['an unspecified address', '::'],
    ['broadcast', '255.255.255.255'],
    ['multicast', '224.0.0.1'],
    ['multicast', 'ff02::1'],
    ['link-local', '169.254.0.1'],
    ['link-local', 'fe80::1'],
    ['metadata', '169.254.169.254'],
    ['metadata', '::ffff:a9fe:a9fe'],
    ['metadata', '64:ff9b::a9fe:a9fe'],
    ['metadata', 'fd00:ec2::254'],
    ['metadata', 'fd00:ec2::23'],
    ['metadata', 'fd20:ce::254'],
    ['metadata', '100.100.100.200'],
    ['metadata', '168.63.129.16'],
    ['metadata', '192.0.0.192'],
    ['a tunnel', '2002:7f00:1::'],
    ['a tunnel', '2002:101:101::'],
    ['a tunnel', '2001::1'],
    ['a tunnel', '::1.1.1.1'],
    ['a tunnel', '::7f00:1'],
    ['a tunnel', '::ffff:0:127.0.0.1'],
    ['a tunnel', '64:ff9b:1::1.1.1.1'],
  ])('%s: %s', (_what, address) => {
    expect(classOfAddress(address)).toBe('never');
  });
});

test('an IPv4 address has the same class in every spelling, mapped and behind NAT64', () => {
  fc.assert(
    fc.property(fc.ipV4Extended(), (spelling) => {
      const address = canonicalAddress(spelling) ?? '';
      const [a = 0, b = 0, c = 0, d = 0] = addressBytes(address);
      const kind = classOfAddress(address);
      const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
      expect(classOfAddress(spelling)).toBe(kind);
      expect(classOfAddress(`::ffff:${hex}`)).toBe(kind);
      expect(classOfAddress(`64:ff9b::${hex}`)).toBe(kind);
    }),
  );
});

test('an IPv6 address is its own one spelling', () => {
  fc.assert(
    fc.property(fc.ipV6(), (text) => {
      const address = canonicalAddress(text) ?? '';
      expect(canonicalAddress(address)).toBe(address);
      expect(classOfAddress(text)).toBe(classOfAddress(address));
    }),
  );
});
