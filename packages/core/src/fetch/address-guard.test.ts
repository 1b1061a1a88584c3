import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import { expect, test } from 'vitest';
import { checkHost, guardedLookup } from './address-guard.ts';

test.each([
  'http://127.0.0.1/',
  'http://[::1]:8080/',
  'http://0x7f.1/',
  'http://2130706433/',
  'http://0177.0.0.1/',
  'http://[::ffff:a00:1]/',
  'http://[::127.0.0.1]/',
  'git://0x7f.1/',
  'ssh://2130706433/',
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

test.each([
  ['a cloud tells a machine its credentials', '168.63.129.16'],
  ['nothing is given out yet', '4000::1'],
  ['NAT64 leads to a private network', '64:ff9b::a00:1'],
])('where %s, a name leads to nothing that is asked', async (_, address) => {
  await expect(lookup([{ address, family: isIP(address) }], true)).rejects.toMatchObject({
    code: 'fetch/refused-address',
  });
});

test('a network without IPv4 leads to public addresses through NAT64', async () => {
  expect(await lookup([{ address: '64:ff9b::101:101', family: 6 }], false)).toBe('64:ff9b::101:101');
});

test('public addresses pass in the form the caller asked for', async () => {
  const addresses = [{ address: '1.1.1.1', family: 4 }];
  expect(await lookup(addresses, true)).toEqual(addresses);
  expect(await lookup(addresses, false)).toBe('1.1.1.1');
});

test('a host without addresses is not reachable', async () => {
  await expect(lookup([], true)).rejects.toMatchObject({ code: 'fetch/unreachable' });
});
