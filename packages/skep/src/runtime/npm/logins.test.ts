import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { authorization, clientIdentity, type Asked } from './logins.ts';
import { parseNpmrc } from './npmrc.ts';
import { registriesSet } from './registries.ts';

const config = (text: string) => parseNpmrc(text, {});

/** An address that one registry names, of a person who has these. */
function asked(url: string, namedBy = 'https://a.test/', registries = [namedBy]): Asked {
  return { url: new URL(url), namedBy: new URL(namedBy), registries: registries.map((one) => new URL(one)) };
}

describe('authorization', () => {
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
  const password = Buffer.from('p:w').toString('base64');

  test.each([
    ['a token', '//a.test/:_authToken = t', 'https://a.test/x', 'Bearer t'],
    ['a token without the slash', '//a.test:_authToken = t', 'https://a.test/x', 'Bearer t'],
    [
      'the nearest of two',
      '//a.test/:_authToken = far\n//a.test/b/:_authToken = t',
      'https://a.test/b/x',
      'Bearer t',
    ],
    ['a pair', `//a.test/:_auth = ${password}`, 'https://a.test/x', `Basic ${password}`],
    [
      'a name and password',
      `//a.test/:username = u\n//a.test/:_password = ${password}`,
      'https://a.test/',
      basic('u:p:w'),
    ],
    ['a login in the address', '', 'https://u:p@a.test/x', basic('u:p')],
    ['nothing for another host', '//a.test/:_authToken = t', 'https://b.test/x', undefined],
    ['nothing for another port', '//a.test/:_authToken = t', 'https://a.test:8443/x', undefined],
    [
      'nothing for a host that only begins like it',
      '//a.test/:_authToken = t',
      'https://a.test.evil/x',
      undefined,
    ],
    ['nothing for another directory', '//a.test/b/:_authToken = t', 'https://a.test/c/x', undefined],
    ['nothing that is set for no place', '_authToken = t\n_auth = t', 'https://a.test/x', undefined],
  ])('is %s', (_what, text, url, expected) => expect(authorization(config(text), asked(url))).toBe(expected));
});

describe('the login for one registry', () => {
  const settings = config(`
    registry = https://a.test/npm/
    @b:registry = https://b.test/npm
    @c:registry = https://a.test/private/
    //a.test/npm/:_authToken = A
    //b.test/npm/:_authToken = B
    //a.test/private/:_authToken = C
    //files.test/:_authToken = F`);
  const registries = registriesSet(settings).map(({ href }) => href);
  const [a, b] = ['https://a.test/npm/', 'https://b.test/npm/'];

  test.each([
    ['goes along with what that registry names below itself', b, 'https://b.test/npm/x/-/x.tgz', 'Bearer B'],
    [
      'does not go along with what another registry names there',
      a,
      'https://b.test/npm/x/-/x.tgz',
      undefined,
    ],
    ['goes along with what its own host names', a, 'https://a.test/private/x.tgz', 'Bearer C'],
    ['does not travel in the clear because its registry says so', b, 'http://b.test/npm/x.tgz', undefined],
    ['does not go to another directory of its host', b, 'https://b.test/admin', undefined],
    ['does not go to another host', b, 'https://evil.test/npm/x.tgz', undefined],
  ])('%s', (_what, namedBy, url, expected) => {
    expect(authorization(settings, asked(url, namedBy, registries))).toBe(expected);
  });

  test('is another thing than one for a host of files, which every registry may name', () => {
    expect(authorization(settings, asked('https://files.test/x.tgz', b, registries))).toBe('Bearer F');
  });

  test('is that of all registries that it is set for together', () => {
    const shared = config('//a.test/:_authToken = t');
    const both = ['https://a.test/one/', 'https://a.test/two/'];
    expect(authorization(shared, asked('https://a.test/two/x.tgz', both[0], both))).toBe('Bearer t');
  });
});

describe('a client certificate', () => {
  test('is shown to the place that it is set for and to no other', async () => {
    const directory = await mkdtemp(path.join(tmpdir(), 'skep-logins-'));
    try {
      const [certfile, keyfile] = [path.join(directory, 'cert'), path.join(directory, 'key')];
      await Promise.all([writeFile(certfile, 'CERT'), writeFile(keyfile, 'KEY')]);
      const settings = config(`//a.test/npm/:certfile = ${certfile}\n//a.test/npm/:keyfile = ${keyfile}`);
      const shown = (url: string, namedBy?: string) =>
        clientIdentity(settings, asked(url, namedBy, ['https://a.test/npm/', 'https://b.test/']));
      expect(await shown('https://a.test/npm/x', 'https://a.test/npm/')).toEqual({
        cert: 'CERT',
        key: 'KEY',
      });
      expect(await shown('https://a.test/other', 'https://a.test/npm/')).toBeUndefined();
      expect(await shown('https://cdn.test/npm/x', 'https://a.test/npm/')).toBeUndefined();
      expect(await shown('https://a.test/npm/x', 'https://b.test/')).toBeUndefined();
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  test('that cannot be read is named', async () => {
    const settings = config('//a.test/:certfile = /none/cert\n//a.test/:keyfile = /none/key');
    await expect(clientIdentity(settings, asked('https://a.test/x'))).rejects.toMatchObject({
      code: 'config/unreadable',
      message: expect.stringContaining('/none/'),
    });
  });
});
