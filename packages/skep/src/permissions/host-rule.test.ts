import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { spelledHost, hostProblem, isNeverReached, isPrivateHost } from './host-rule.ts';

describe('a host of a profile', () => {
  test.each([
    'example.com',
    'Example.COM',
    '.example.com',
    '.com',
    'db',
    'xn--bcher-kva.example',
    '10.0.0.1',
    '2001:db8::1',
    '::ffff:10.0.0.1',
    'a-b.c1',
    '_mcp._tcp.example.com',
    `${'a'.repeat(63)}.example`,
  ])('may be %s', (host) => expect(hostProblem(host)).toBeUndefined());

  test.each([
    ['*.x.com', 'is a wildcard; write ".x.com" for x.com and all below it'],
    ['*', 'is a wildcard; set "insecure_allow_all" to true for any host'],
    ['a.*.com', 'is a wildcard; write names, or a leading dot for a domain and all below it'],
    ['x.com:443', 'has a port; write "x.com" here, and 443 in "allow_port"'],
    ['https://x.com/path', 'is an address of the web; write "x.com"'],
    ['10.0.0.0/8', 'is a range of addresses; name each address'],
    ['[2001:db8::1]', 'stands in brackets; write "2001:db8::1"'],
    ['x.com.', 'ends in a dot; write "x.com"'],
    ['bücher.example', 'is not written in ASCII; write "xn--bcher-kva.example"'],
    ['127.1', 'is a hidden IP address; write "127.0.0.1"'],
    ['0x7f000001', 'is a hidden IP address; write "127.0.0.1"'],
    ['2130706433', 'is a hidden IP address; write "127.0.0.1"'],
    ['fe80::1%eth0', 'is an address of one network card'],
    ['a..b', 'is not a host name'],
    ['..b', 'is not a host name'],
    ['.', 'is not a host name'],
    ['', 'is not a host name'],
    ['-a.com', 'is not a host name'],
    ['a b', 'is not a host name'],
    ['a\0b', 'is not a host name'],
    ['x.999', 'is not a host name'],
    [`${'a'.repeat(64)}.com`, 'is not a host name'],
    [`${'a.'.repeat(127)}com`, 'is not a host name'],
    ['user@x.com', 'is not a host name'],
  ])('may not be %s', (host, problem) => expect(hostProblem(host)).toBe(problem));

  test('that is to be written instead is one itself', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.webUrl(), fc.domain(), fc.ipV6(), fc.string({ unit: 'grapheme' })),
        (host) => {
          const [, write] = /write "([^"]*)"/.exec(hostProblem(host) ?? '') ?? [];
          if (write !== undefined) expect(hostProblem(write)).toBeUndefined();
          if (hostProblem(host) !== undefined) return;
          const canonical = spelledHost(host);
          expect(hostProblem(canonical)).toBeUndefined();
          expect(spelledHost(canonical)).toBe(canonical);
        },
      ),
    );
  });
});

test.each([
  '127.0.0.1',
  '::1',
  '::ffff:127.0.0.1',
  '0.0.0.0',
  '169.254.169.254',
  'fe80::1',
  'fd00:ec2::254',
  '100.100.100.200',
  '224.0.0.1',
  '255.255.255.255',
  'ff02::1',
  'localhost',
  '.localhost',
  'a.localhost',
  'metadata.google.internal',
])('%s is opened by no profile', (host) => {
  expect(isNeverReached(host)).toBe(true);
});

test.each(['10.0.0.1', '192.168.1.1', 'fd00::1', '100.64.0.1', 'db', 'nas.local', '.corp', 'x.internal'])(
  '%s is private, and may be opened',
  (host) => {
    expect(isPrivateHost(host)).toBe(true);
    expect(isNeverReached(host)).toBe(false);
  },
);

test.each(['example.com', '.example.com', '1.1.1.1', '2606:4700::1111', 'local.example'])(
  '%s is public by its spelling',
  (host) => {
    expect(isPrivateHost(host)).toBe(false);
    expect(isNeverReached(host)).toBe(false);
  },
);
