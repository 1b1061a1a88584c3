import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isAt, registryUrl, shownServer, splitAddress } from './registry-address.ts';

test.each([
  ['https://r.test', { server: 'https://r.test' }],
  ['https://r.test/', { server: 'https://r.test' }],
  ['https://r.test/mcp/?a=b#c', { server: 'https://r.test/mcp' }],
  ['https://r.test/registry/acme', { server: 'https://r.test', name: 'acme' }],
  ['https://r.test/registry/acme/v0.1/servers?limit=1', { server: 'https://r.test', name: 'acme' }],
  ['https://r.test:8443/mcp/registry/a%20b/', { server: 'https://r.test:8443/mcp', name: 'a b' }],
  ['https://r.test/registry', { server: 'https://r.test/registry' }],
  ['https://r.test/registry/%zz', { server: 'https://r.test', name: '%zz' }],
])('%s is split into server and registry', (address, split) => {
  expect(splitAddress(new URL(address))).toEqual(split);
});

test('what is put together is split again', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9-]{1,20}$/), (name) => {
      const url = registryUrl('https://r.test/mcp', name);
      expect(splitAddress(new URL(url))).toEqual({ server: 'https://r.test/mcp', name });
    }),
  );
});

test.each([
  ['https://r.test/registry/acme', 'https://r.test', true],
  ['https://r.test', 'https://r.test/', true],
  ['https://r.test/mcp/v1/me', 'https://r.test/mcp', true],
  ['https://r.test/mcp2', 'https://r.test/mcp', false],
  ['https://r.test/', 'https://r.test/mcp', false],
  ['http://r.test', 'https://r.test', false],
  ['https://r.test:8443', 'https://r.test', false],
  ['https://r.test.evil.test', 'https://r.test', false],
  ['https://r.test@evil.test/', 'https://r.test', false],
  ['https://r.test/mcp/../other', 'https://r.test/mcp', false],
  ['https://r.test/mcp/%2e%2e/other', 'https://r.test/mcp', false],
  ['nonsense', 'https://r.test', false],
  ['https://r.test', 'nonsense', false],
])('%s is at %s: %s', (address, server, is) => {
  expect(isAt(address, server)).toBe(is);
});

test('people see host and path', () => {
  expect(shownServer('https://user:secret@r.test/mcp/?token=x')).toBe('r.test/mcp');
});
