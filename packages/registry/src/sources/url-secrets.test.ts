import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { splitCredentials, withoutUrlSecrets } from './url-secrets.ts';

test('an address without user information gives no header', () => {
  const { url, headers } = splitCredentials('https://a.example/x?y#z');
  expect(url.href).toBe('https://a.example/x?y#z');
  expect(headers).toEqual({});
});

test('any user name and password reach the header as they were meant', () => {
  const text = fc.string({ unit: 'grapheme' });
  fc.assert(
    fc.property(text, text, (username, password) => {
      fc.pre(username !== '' || password !== '');
      const { url, headers } = splitCredentials(
        `https://${encodeURIComponent(username)}:${encodeURIComponent(password)}@a.example/`,
      );
      expect(url.href).toBe('https://a.example/');
      expect(Buffer.from(headers['authorization']?.slice('Basic '.length) ?? '', 'base64').toString()).toBe(
        `${username}:${password}`,
      );
    }),
  );
});

test('an unusable escape is taken as it is written', () => {
  expect(splitCredentials('https://a:100%@x.example/').headers).toEqual({
    authorization: `Basic ${Buffer.from('a:100%').toString('base64')}`,
  });
});

test('the message about a wrong address hides the password', () => {
  expect(() => splitCredentials('ftp://ann:hunter2@x.example/')).toThrow(
    '"ftp://[redacted]@x.example/" is not an http or https URL',
  );
});

test.each([
  [{ endpoint: 'https://ann:hunter2@r.test/v' }, { endpoint: 'https://r.test/v' }],
  [
    { url: 'https://f.test/c.json?rev=7&token=hunter2&sig=x' },
    { url: 'https://f.test/c.json?rev=7&token=[redacted]&sig=[redacted]' },
  ],
  [
    { repository: 'https://tok@g.test/r.git', branch: 'b' },
    { repository: 'https://g.test/r.git', branch: 'b' },
  ],
])('%j is stored without its secrets', (config, stored) => {
  expect(JSON.parse(withoutUrlSecrets(JSON.stringify(config)))).toEqual(stored);
});

test.each([
  '{"repository":"git@g.test:r.git"}',
  '{"repository":"ssh://git@g.test/r.git"}',
  '{"data":"https://a:b@c.test"}',
  '{"endpoint":"https://r.test"}',
  '{}',
])('%s has none, and stays as it is', (config) => {
  expect(withoutUrlSecrets(config)).toBe(config);
});
