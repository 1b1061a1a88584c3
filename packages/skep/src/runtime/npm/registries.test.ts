import { describe, expect, test } from 'vitest';
import { parseNpmrc } from './npmrc.ts';
import { npmConnections, registryFor, withoutLogin } from './registries.ts';

const config = (text: string) => parseNpmrc(text, {});

describe('registryFor', () => {
  const settings = config('registry = https://a.test/npm\n@team:registry = https://b.test');
  test.each([
    ['left-pad', 'https://a.test/npm/'],
    ['@team/x', 'https://b.test/'],
    ['@other/x', 'https://a.test/npm/'],
  ])('%s comes from %s', (name, expected) => expect(registryFor(settings, name)?.href).toBe(expected));

  test('knows none where none is set', () => expect(registryFor(config(''), 'x')).toBeUndefined());

  test.each(['file:///etc', 'nonsense'])('refuses %s without repeating it', (registry) => {
    expect(() => registryFor(config(`registry = ${registry}`), 'x')).toThrow(
      expect.objectContaining({ code: 'config/invalid', message: expect.not.stringContaining(registry) }),
    );
  });

  test('leaves a login out of what may be told', () => {
    expect(withoutLogin(new URL('https://u:p@a.test/x'))).toBe('https://a.test/x');
  });
});

describe('npmConnections', () => {
  test.each([
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
    expect(await npmConnections(config(text), env, undefined)).toMatchObject(expected);
  });

  test('trusts the authorities of the command and of npm', async () => {
    const settings = config(String.raw`ca[]="A\nB"`);
    expect((await npmConnections(settings, {}, 'C')).ca).toEqual(['C', 'A\nB']);
  });
});
