import { describe, expect, test } from 'vitest';
import { checkIssuerUrl, createIssuerFetch, type PlainHttp } from './issuer-fetch.ts';

describe('an address of an identity provider', () => {
  test.each<[string, PlainHttp, boolean]>([
    ['https://idp.test/realm', 'never', true],
    ['http://idp.test', 'never', false],
    ['http://localhost:8080', 'never', false],
    ['http://localhost:8080', 'loopback', true],
    ['http://127.0.0.1', 'loopback', true],
    ['http://[::1]:1', 'loopback', true],
    ['http://localhost.evil.test', 'loopback', false],
    ['http://127.0.0.1.evil.test', 'loopback', false],
    ['http://idp.test', 'any', true],
    ['ftp://idp.test', 'any', false],
    ['idp.test', 'any', false],
    ['', 'any', false],
    ['https://user@idp.test', 'any', false],
  ])('%j with plain http %s: %j', (text, plain, accepted) => {
    if (accepted) expect(checkIssuerUrl(text, plain).href).toContain('://');
    else
      expect(() => checkIssuerUrl(text, plain)).toThrow(
        expect.objectContaining({ code: 'auth/invalid-provider' }),
      );
  });
});

describe('the private-address guard', () => {
  const refused = expect.objectContaining({ code: 'fetch/refused-address' });

  test.each([
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://10.0.0.1/',
    'https://169.254.169.254/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://[::ffff:10.0.0.1]/',
  ])('refuses %s before connecting', async (url) => {
    const { fetch, close } = createIssuerFetch({ plainHttp: 'never', allowPrivate: false });
    await expect(fetch(url)).rejects.toEqual(refused);
    close();
  });

  test('refuses a name that leads to a private address', async () => {
    const resolve = () => Promise.resolve([{ address: '192.168.1.1', family: 4 }]);
    const { fetch, close } = createIssuerFetch({ plainHttp: 'any', allowPrivate: false, resolve });
    for (const scheme of ['http', 'https'])
      await expect(fetch(`${scheme}://idp.test/`)).rejects.toEqual(refused);
    close();
  });
});
