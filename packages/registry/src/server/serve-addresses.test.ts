import { fromArgv } from '@skep/core/settings/from-argv.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { expect, test, describe } from 'vitest';
import { serve } from '../commands/serve.ts';
import { serveAddresses, type ServeAddresses, parseAddress, sameAddress } from './serve-addresses.ts';

/** Where `serve` with these flags listens. */
function addressesOf(mode: 'anonymous' | 'oauth', flags: readonly string[]): ServeAddresses {
  const { settings: rows } = serve;
  const given = fromArgv({ rows, positionals: [] }, ['--config', 'registry.yaml', ...flags]);
  const settings = mergeSettings(rows, [given.settings]);
  const text = (name: string) => settings.get(name)?.value as string | undefined;
  return serveAddresses({ address: text('address'), internalAddress: text('internalAddress') ?? '' }, mode);
}

test('listens on this machine alone without sign-in, where whoever reaches it may write, unless an address is given', () => {
  expect(addressesOf('anonymous', []).public).toEqual({ host: '127.0.0.1', port: 8080 });
  expect(addressesOf('anonymous', ['--address', ':8080']).public).toEqual({ host: '', port: 8080 });
  expect(addressesOf('oauth', []).public).toEqual({ host: '', port: 8080 });
});

test('shows /metrics and /version to this machine alone unless --internal-address is given', () => {
  for (const mode of ['anonymous', 'oauth'] as const) {
    expect(addressesOf(mode, []).internal).toEqual({ host: '127.0.0.1', port: 8081 });
    expect(addressesOf(mode, ['--internal-address', ':9000']).internal).toEqual({ host: '', port: 9000 });
  }
});

test('knows when nobody has chosen to listen on every interface, so that a reload cannot end sign-in there', () => {
  expect(addressesOf('oauth', []).isChosen).toBe(false);
  expect(addressesOf('oauth', ['--address', ':8080']).isChosen).toBe(true);
  expect(addressesOf('anonymous', []).isChosen).toBe(true);
});

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
