import { describe, expect, it } from 'vitest';
import { parseNpmrc } from './npmrc.ts';
import { authorization, npmConnections, registryFor, withoutLogin } from './registries.ts';

const config = (text: string) => parseNpmrc(text, {});

describe('registryFor', () => {
  const settings = config('registry = https://a.test/npm\n@team:registry = https://b.test');
  it.each([
    ['left-pad', 'https://a.test/npm/'],
    ['@team/x', 'https://b.test/'],
    ['@other/x', 'https://a.test/npm/'],
  ])('%s comes from %s', (name, expected) => expect(registryFor(settings, name)?.href).toBe(expected));

  it('knows none where none is set', () => expect(registryFor(config(''), 'x')).toBeUndefined());

  it.each(['file:///etc', 'nonsense'])('refuses %s without repeating it', (registry) => {
    expect(() => registryFor(config(`registry = ${registry}`), 'x')).toThrow(
      expect.objectContaining({ code: 'config/invalid', message: expect.not.stringContaining(registry) }),
    );
  });

  it('leaves a login out of what may be told', () => {
    expect(withoutLogin(new URL('https://u:p@a.test/x'))).toBe('https://a.test/x');
  });
});

describe('authorization', () => {
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
  const password = Buffer.from('p:w').toString('base64');

  it.each([
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
  ])('is %s', (_what, text, url, expected) =>
    expect(authorization(config(text), new URL(url))).toBe(expected),
  );
});

describe('npmConnections', () => {
  const registry = new URL('https://a.test/');
  it.each([
    ['nothing', '', {}, { httpProxy: '', httpsProxy: '', noProxy: '', verify: true }],
    [
      'the settings of npm before the variables of the system',
      'https-proxy = http://p.test:1\nnoproxy = x.test',
      { HTTPS_PROXY: 'http://q.test:2', http_proxy: 'http://q.test:3', NO_PROXY: 'y.test' },
      { httpsProxy: 'http://p.test:1', httpProxy: 'http://q.test:3', noProxy: 'x.test' },
    ],
    ['the variables in either case', '', { https_proxy: 'http://q.test' }, { httpsProxy: 'http://q.test' }],
    ['no check of certificates by word', 'strict-ssl = false', {}, { verify: false }],
    ['an unset value', 'https-proxy = null', {}, { httpsProxy: '' }],
  ])('takes %s', async (_what, text, env, expected) => {
    expect(await npmConnections(config(text), env, { registry })).toMatchObject(expected);
  });

  it('trusts the authorities of the command and of npm', async () => {
    const settings = config(String.raw`ca[]="A\nB"`);
    expect((await npmConnections(settings, {}, { registry, caCert: 'C' })).ca).toEqual(['C', 'A\nB']);
  });
});
