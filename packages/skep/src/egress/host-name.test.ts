import { isIP } from 'node:net';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalHost, parseAuthority, showAuthority } from './host-name.ts';

test.each([
  ['API.Example.COM', 'api.example.com'],
  ['api.example.com.', 'api.example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['BÜCHER.example.', 'xn--bcher-kva.example'],
  ['ｅｖｉｌ.example', 'evil.example'],
  ['ex\u00adample.com', 'example.com'],
  ['_dmarc.example', '_dmarc.example'],
  ['localhost', 'localhost'],
  ['127.0.0.1', '127.0.0.1'],
  ['127.0.0.1.', '127.0.0.1'],
  ['2130706433', '127.0.0.1'],
  ['0x7f000001', '127.0.0.1'],
  ['0177.1', '127.0.0.1'],
  ['１２７.0.0.1', '127.0.0.1'],
  ['[::1]', '::1'],
  ['::1', '::1'],
  ['[::FFFF:127.0.0.1]', '127.0.0.1'],
  ['[2606:4700:0:0::1]', '2606:4700::1'],
])('%s is %s', (text, host) => {
  expect(canonicalHost(text)).toBe(host);
});

test.each([
  '',
  '.',
  '..',
  'a..b',
  '.example.com',
  'example.com..',
  '-a.example',
  'a-.example',
  'a b',
  'a\tb',
  'a\nb',
  'a/b',
  'a?b',
  'a#b',
  'a@b',
  'a\\b',
  'a%2eb',
  'a\0b',
  '*.example.com',
  '1.2.3.256',
  '1.2.3.4.5',
  '[::1',
  '::1]',
  '[fe80::1%25eth0]',
  '[a.example]',
  'a:b:c',
  `${'a'.repeat(64)}.example`,
  Array.from({ length: 64 }, () => 'aaa').join('.'),
])('"%s" is no host', (text) => {
  expect(canonicalHost(text)).toBeUndefined();
});

test.each([
  ['a.example:443', 'a.example', 443],
  ['A.Example.:1', 'a.example', 1],
  ['[::1]:65535', '::1', 65_535],
  ['127.1:80', '127.0.0.1', 80],
  ['a.example', 'a.example', 80],
  ['[::1]', '::1', 80],
])('%s is %s at %i', (text, host, port) => {
  expect(parseAuthority(text, 80)).toEqual({ host, port });
});

test.each([
  '',
  ':80',
  'a:0',
  'a:65536',
  'a:1e3',
  'a:+80',
  'a: 80',
  'a:80:80',
  '::1:80',
  '::1',
  'a:',
  'u@a:80',
  'a:080000',
])('"%s" is no host with a port', (text) => {
  expect(parseAuthority(text)).toBeUndefined();
});

test('a host has one spelling, and is a name or an address in it', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.domain(), fc.ipV4Extended()),
      (text) => {
        const host = canonicalHost(text);
        if (host === undefined) return;
        expect(canonicalHost(host)).toBe(host);
        expect(host).toMatch(isIP(host) === 6 ? /^[0-9a-f:]+$/ : /^[a-z0-9._-]+$/);
        const shown = showAuthority({ host, port: 8080 });
        expect(parseAuthority(shown)).toEqual({ host, port: 8080 });
      },
    ),
    { numRuns: 500 },
  );
});
