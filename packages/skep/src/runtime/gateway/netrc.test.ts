import { expect, test } from 'vitest';
import { loginFor, parseNetrc } from './netrc.ts';

test('logins are found by host, on one line or several', () => {
  const text = '# machine no.test login a\nmachine a.test login me password s3cret\nmachine b.test\n  login you\n  password pw\ndefault login x password y\n'; // prettier-ignore
  expect([...parseNetrc(text)]).toEqual([
    ['a.test', ['me', 's3cret']],
    ['b.test', ['you', 'pw']],
  ]);
});

test.each([
  ['https://a.test/x', 'https://a.test/simple/', 'me:s3cret'],
  ['https://b.test/x', 'https://a.test/simple/', undefined],
  ['http://a.test/x', 'https://a.test/simple/', undefined],
  ['https://b.test/x', 'https://u:p%40@b.test/', 'u:p@'],
  ['https://c.test/x', 'https://c.test/', undefined],
])('at %s the login of %s is %s', (at, registry, login) => {
  const logins = new Map([['a.test', ['me', 's3cret'] as const]]);
  const expected = login === undefined ? undefined : `Basic ${Buffer.from(login).toString('base64')}`;
  expect(loginFor(new URL(at), new URL(registry), logins)).toBe(expected);
});
