import { describe, expect, test } from 'vitest';
import { parseAddress, sameAddress } from './listen-address.ts';

describe('parseAddress', () => {
  test.each([
    [':8080', '', 8080],
    ['127.0.0.1:0', '127.0.0.1', 0],
    ['localhost:65535', 'localhost', 65_535],
    ['[::1]:8080', '::1', 8080],
  ])('reads %s', (text, host, port) => {
    expect(parseAddress(text, '--address')).toEqual({ host, port });
  });

  test.each([
    '',
    '8080',
    ':',
    ':http',
    'example.com:80',
    '::1:8080',
    '[127.0.0.1]:80',
    '[::1]',
    ':65536',
    '1.2.3:80',
  ])('refuses "%s", naming the flag', (text) => {
    expect(() => parseAddress(text, '--address')).toThrow(/^--address: /);
  });
});

describe('sameAddress', () => {
  test.each([
    [':8080', ':8080', true],
    [':8080', '127.0.0.1:8080', true],
    ['127.0.0.1:8080', '127.0.0.1:8081', false],
    ['127.0.0.1:8080', '[::1]:8080', false],
    [':0', ':0', false],
  ])('%s and %s: %s', (one, other, same) => {
    expect(sameAddress(parseAddress(one, 'a'), parseAddress(other, 'b'))).toBe(same);
  });
});
