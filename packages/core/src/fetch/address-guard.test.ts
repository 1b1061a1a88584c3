import type { LookupAddress } from 'node:dns';
import { expect, test } from 'vitest';
import { checkHost, guardedLookup, isPublicAddress } from './address-guard.ts';

test.each(['1.1.1.1', '93.184.216.34', '2606:4700::1111', '::ffff:1.1.1.1'])('%s is public', (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test.each([
  '127.0.0.1',
  '127.9.9.9',
  '10.0.0.1',
  '172.16.0.1',
  '192.168.1.1',
  '169.254.169.254',
  '100.64.0.1',
  '0.0.0.0',
  '255.255.255.255',
  '224.0.0.1',
  '192.0.2.1',
  '198.18.0.1',
  '::',
  '::1',
  'fe80::1',
  'fc00::1',
  'ff02::1',
  '::ffff:127.0.0.1',
  '::ffff:10.0.0.1',
  '::127.0.0.1',
  '::7f00:1',
  '::101:101',
  '64:ff9b::7f00:1',
  '2002:7f00:1::',
  '2001:db8::1',
  'not an address',
  '',
])('%s is not public', (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each([
  'http://127.0.0.1/',
  'http://[::1]:8080/',
  'http://0x7f.1/',
  'http://2130706433/',
  'http://0177.0.0.1/',
  'http://[::ffff:a00:1]/',
  'http://[::127.0.0.1]/',
])('%s names a private address in one of its spellings', (url) => {
  expect(() => checkHost(new URL(url))).toThrow(expect.objectContaining({ code: 'fetch/refused-address' }));
});

test('a host name is left for the lookup to judge', () => {
  expect(() => checkHost(new URL('http://localhost/'))).not.toThrow();
});

const lookup = (addresses: readonly LookupAddress[], all: boolean) =>
  new Promise((resolve, reject) => {
    guardedLookup(() => Promise.resolve(addresses))('example.test', { all }, (error, found) => {
      if (error === null) resolve(found);
      else reject(error);
    });
  });

test('one private address among public ones refuses the host', async () => {
  const addresses = [
    { address: '1.1.1.1', family: 4 },
    { address: '10.0.0.1', family: 4 },
  ];
  await expect(lookup(addresses, true)).rejects.toMatchObject({
    code: 'fetch/refused-address',
    message: 'the address of "example.test" (10.0.0.1) is not public',
  });
});

test('public addresses pass in the form the caller asked for', async () => {
  const addresses = [{ address: '1.1.1.1', family: 4 }];
  expect(await lookup(addresses, true)).toEqual(addresses);
  expect(await lookup(addresses, false)).toBe('1.1.1.1');
});

test('a host without addresses is not reachable', async () => {
  await expect(lookup([], true)).rejects.toMatchObject({ code: 'fetch/unreachable' });
});
