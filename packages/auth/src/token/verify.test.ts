import { createLocalJWKSet } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { AUDIENCE, forged, ISSUER, NOW, signed, type SigningKey, signingKey } from './tokens.fixture.ts';
import { looksLikeJwt, type TokenRules, verifyJwt } from './verify.ts';

const S = NOW / 1_000;
const rules: TokenRules = { issuers: [ISSUER], audience: AUDIENCE, leewayS: 5, subject: 'optional' };
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

let key: SigningKey;
let other: SigningKey;
let find: (
  header: Parameters<ReturnType<typeof createLocalJWKSet>>[0],
) => ReturnType<ReturnType<typeof createLocalJWKSet>>;

beforeAll(async () => {
  [key, other] = await Promise.all([signingKey('k1'), signingKey('k1')]);
  find = createLocalJWKSet({ keys: [key.jwk] });
});

const reasonOf = async (token: string, changed: Partial<TokenRules> = {}): Promise<string> => {
  const outcome = await verifyJwt(token, { ...rules, ...changed }, { find }, NOW);
  return outcome.kind === 'invalid' ? outcome.reason : outcome.kind;
};

describe('a token is accepted', () => {
  test.each(ALGORITHMS)('signed with %s', async (alg) => {
    const made = await signingKey('kid', alg);
    const keys = { find: createLocalJWKSet({ keys: [made.jwk] }) };
    expect(await verifyJwt(await signed(made), rules, keys, NOW)).toMatchObject({
      kind: 'identity',
      identity: { subject: 'alice', issuer: ISSUER },
      expiresAt: NOW + 300_000,
    });
  });

  test.each([
    ['with the audience among others', { aud: ['x', AUDIENCE] }],
    ['issued within the leeway of the future', { iat: S + 5, nbf: S + 5 }],
    ['in its last second', { exp: S + 1 }],
    ['without a subject', { sub: undefined }],
    ['without iat', { iat: undefined }],
  ])('%s', async (_name, changes) => {
    expect(await reasonOf(await signed(key, changes))).toBe('identity');
  });

  test('by whichever of several keys of one id has signed it, and by no other', async () => {
    const third = await signingKey('k1');
    const keys = { find: createLocalJWKSet({ keys: [other.jwk, key.jwk] }) };
    const checked = async (by: SigningKey): Promise<string> => {
      const outcome = await verifyJwt(await signed(by), rules, keys, NOW);
      return outcome.kind === 'invalid' ? outcome.reason : outcome.kind;
    };
    expect([await checked(key), await checked(other), await checked(third)]).toEqual([
      'identity',
      'identity',
      'bad-signature',
    ]);
    const expired = await verifyJwt(await signed(key, { exp: S }), rules, keys, NOW);
    expect(expired).toMatchObject({ reason: 'expired' });
  });

  test('and every claim is kept, inherited names included', async () => {
    const payload = JSON.parse('{"__proto__":"x","constructor":["y"],"nested":{"a":1}}');
    const outcome = await verifyJwt(await signed(key, payload), rules, { find }, NOW);
    const claims = outcome.kind === 'identity' ? outcome.identity.claims : {};
    expect(Object.getOwnPropertyDescriptor(claims, '__proto__')?.value).toBe('x');
    expect(claims).toMatchObject({ constructor: ['y'], nested: { a: 1 }, sub: 'alice' });
  });

  test('by any issuer and for any audience where neither is configured', async () => {
    const token = await signed(key, { iss: 'https://other.test', aud: undefined });
    expect(await reasonOf(token, { issuers: [], audience: undefined })).toBe('identity');
  });

  test.each([
    [{ preferred_username: 'p', email: 'e', name: 'n' }, 'p'],
    [{ email: 'e', name: 'n' }, 'e'],
    [{ name: 'n' }, 'n'],
    [{ preferred_username: 7 }, ''],
  ])('and shows %j as %j', async (changes, name) => {
    const outcome = await verifyJwt(await signed(key, changes), rules, { find }, NOW);
    expect(outcome).toMatchObject({ kind: 'identity', identity: { name } });
  });
});

describe('a token is refused', () => {
  test.each([
    ['of another issuer', { iss: 'https://evil.test' }, 'wrong-issuer'],
    ['of the issuer with a slash', { iss: `${ISSUER}/` }, 'wrong-issuer'],
    ['without issuer', { iss: undefined }, 'wrong-issuer'],
    ['for another audience', { aud: 'other' }, 'wrong-audience'],
    ['for a part of the audience', { aud: ['skep'] }, 'wrong-audience'],
    ['without audience', { aud: undefined }, 'wrong-audience'],
    ['without expiry', { exp: undefined }, 'no-expiry'],
    ['with an expiry of text', { exp: '9999999999' }, 'unusable-claims'],
    ['the moment it expires, without leeway', { exp: S }, 'expired'],
    ['one second after', { exp: S - 1 }, 'expired'],
    ['long after', { exp: S - 100 }, 'expired'],
    ['before nbf', { nbf: S + 6 }, 'not-yet-valid'],
    ['issued in the future', { iat: S + 6 }, 'not-yet-valid'],
    ['with iat of text', { iat: 'now' }, 'unusable-claims'],
    ['with nbf of text', { nbf: 'now' }, 'unusable-claims'],
    ['with a subject that is a number', { sub: 7 }, 'unusable-claims'],
  ])('%s', async (_name, changes, reason) => {
    expect(await reasonOf(await signed(key, changes))).toBe(reason);
  });

  test('without subject where one is required', async () => {
    expect(await reasonOf(await signed(key, { sub: undefined }), { subject: 'required' })).toBe('no-subject');
    expect(await reasonOf(await signed(key, { sub: '' }), { subject: 'required' })).toBe('no-subject');
  });

  const good = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: S + 300 };

  test.each([
    ['unsigned', forged({ alg: 'none', kid: 'k1' }, good, ''), 'algorithm-refused'],
    ['unsigned with a signature', forged({ alg: 'none', kid: 'k1' }, good), 'algorithm-refused'],
    ['alg None', forged({ alg: 'None', kid: 'k1' }, good), 'algorithm-refused'],
    ['HS256', forged({ alg: 'HS256', kid: 'k1' }, good), 'algorithm-refused'],
    ['HS512', forged({ alg: 'HS512', kid: 'k1' }, good), 'algorithm-refused'],
    ['an unknown algorithm', forged({ alg: 'XX', kid: 'k1' }, good), 'algorithm-refused'],
    ['without key id', forged({ alg: 'ES256' }, good), 'no-key-id'],
    ['a key id that is a number', forged({ alg: 'ES256', kid: 1 }, good), 'no-key-id'],
    ['an unknown key id', forged({ alg: 'ES256', kid: 'k2' }, good), 'unknown-key'],
    ['a key of another algorithm', forged({ alg: 'RS256', kid: 'k1' }, good), 'unknown-key'],
    ['a made-up signature', forged({ alg: 'ES256', kid: 'k1' }, good, 'A'.repeat(86)), 'bad-signature'],
    ['an empty signature', forged({ alg: 'ES256', kid: 'k1' }, good, ''), 'bad-signature'],
    ['an unknown critical member', forged({ alg: 'ES256', kid: 'k1', crit: ['x'], x: 1 }, good), 'malformed'],
    ['a payload that is a list', forged({ alg: 'ES256', kid: 'k1' }, [1]), 'malformed'],
    ['a payload that is null', forged({ alg: 'ES256', kid: 'k1' }, null), 'malformed'],
  ])('with %s', async (_name, token, reason) => {
    expect(await reasonOf(token)).toBe(reason);
  });

  test('signed by another key of the same id', async () => {
    expect(await reasonOf(await signed(other))).toBe('bad-signature');
  });

  test('signed by a key that it brings along', async () => {
    expect(await reasonOf(await signed(other, {}, { jwk: other.jwk, jku: 'https://evil.test/jwks' }))).toBe(
      'bad-signature',
    );
  });

  test('signed with the public key as a shared secret', async () => {
    const header = { alg: 'HS256', kid: 'k1' };
    const { createHmac } = await import('node:crypto');
    const unsigned = forged(header, good).split('.', 2).join('.');
    const mac = createHmac('sha256', JSON.stringify(key.jwk)).update(unsigned).digest('base64url');
    expect(await reasonOf(`${unsigned}.${mac}`)).toBe('algorithm-refused');
  });

  test('when cut at any place', async () => {
    const token = await signed(key);
    for (let length = 0; length < token.length; length += 7) {
      const cut = token.slice(0, length);
      if (looksLikeJwt(cut)) expect(['bad-signature', 'malformed']).toContain(await reasonOf(cut));
    }
  });

  test('when any character of it is another one', async () => {
    const token = await signed(key);
    for (let at = 0; at < token.length - 1; at += 11) {
      if (token[at] === '.') continue;
      const changed = `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
      expect(await reasonOf(changed)).not.toBe('identity');
    }
  });
});

test.each([{ use: 'enc' }, { alg: 'ES384' }, { key_ops: ['sign'] }])(
  'a key with %j verifies nothing',
  async (changes) => {
    const keys = { find: createLocalJWKSet({ keys: [{ ...key.jwk, ...changes }] }) };
    expect(await verifyJwt(await signed(key), rules, keys, NOW)).toMatchObject({ reason: 'unknown-key' });
  },
);

test('a key set that cannot be had is neither yes nor no', async () => {
  const cause = new SkepError('auth/unavailable');
  const keys = { find: () => Promise.reject(cause) };
  expect(await verifyJwt(await signed(key), rules, keys, NOW)).toEqual({ kind: 'unavailable', cause });
});

test.each([
  ['', false],
  ['abc', false],
  ['a.b.c', false],
  ['a.b', false],
  [forged({ typ: 'JWT' }, {}), false],
  [`${forged({ alg: 'ES256' }, {})}.x`, false],
  [`${forged({ alg: 'RSA-OAEP', enc: 'A256GCM' }, {})}.x.y`, false],
  [forged({ alg: 'ES256' }, {}), true],
])('%j is meant as a JWT: %j', (token, expected) => {
  expect(looksLikeJwt(token)).toBe(expected);
});
