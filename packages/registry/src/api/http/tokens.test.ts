import { forged, signed, signingKey } from '@skep/auth/token/tokens.fixture.ts';
import * as fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { CONTRACT_SWITCHES } from '../../access/authority.ts';
import { apiUnderTest, bearer, oauthWith } from '../api.fixture.ts';
import { READ_ROUTES } from '../routes.ts';
import { snapshotOf, storedServer } from '../snapshot.fixture.ts';

// What tokens of strangers do: nothing (docs/behaviour/registry.md#sign-in).

const [key, other] = [await signingKey('k1'), await signingKey('k2')];
const snapshot = snapshotOf({ main: [storedServer('acme/hidden-name', ['1.0.0'])] });
const auth = oauthWith({ kind: 'full', rules: {}, switches: CONTRACT_SWITCHES });
const server = await apiUnderTest({ snapshot, auth, keys: [key], routes: READ_ROUTES });
afterAll(() => server.close());

const good = await signed(key);
const [head = '', body = '', signature = ''] = good.split('.');
const claims = { iss: 'https://idp.test', aud: 'skep-test', sub: 'alice', exp: 4_102_444_800 };
const NOW_S = server.clock.now() / 1000;

describe('a token', () => {
  test('is accepted when it is good', async () => {
    expect((await server.get('/v1/me', { authorization: `Bearer ${good}` })).statusCode).toBe(200);
    expect((await server.get('/v1/me', { authorization: `bEaReR ${good}` })).statusCode).toBe(200);
  });

  test.each<[what: string, token: string | Promise<string>]>([
    ['cut off', good.slice(0, -10)],
    ['without signature', `${head}.${body}.`],
    ['of two parts', `${head}.${body}`],
    ['with alg none', forged({ alg: 'none', kid: 'k1' }, claims, '')],
    ['signed with a shared secret', forged({ alg: 'HS256', kid: 'k1' }, claims)],
    [
      'with another payload',
      `${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`,
    ],
    ['of an unknown key', signed(other)],
    ['without key id', signed(key, {}, { kid: '' })],
    ['with its own key in it', signed(other, {}, { kid: 'k1', jwk: other.jwk })],
    ['that has expired', signed(key, { exp: NOW_S })],
    ['without expiry', signed(key, { exp: undefined })],
    ['that is not valid yet', signed(key, { nbf: NOW_S + 60 })],
    ['from the future', signed(key, { iat: NOW_S + 60 })],
    ['of another issuer', signed(key, { iss: 'https://evil.test' })],
    ['of a similar issuer', signed(key, { iss: 'https://idp.test/' })],
    ['for another audience', signed(key, { aud: 'other' })],
    ['that is no JWT', 'opaque-token'],
  ])('%s is 401 without a word about why', async (_what, token) => {
    const answer = await server.get('/v1/me', { authorization: `Bearer ${await token}` });
    expect([answer.statusCode, answer.json()]).toEqual([401, { error: 'token validation failed' }]);
    expect(answer.headers['www-authenticate']).toContain('error="invalid_token"');
  });

  test('given twice is refused, whichever of the two is good', async () => {
    for (const authorization of [
      [`Bearer ${good}`, 'Bearer x'],
      ['Bearer x', `Bearer ${good}`],
      [`Bearer ${good}, Bearer ${good}`],
    ]) {
      const headers = Object.fromEntries([['authorization', authorization]]);
      const answer = await server.ask({ method: 'GET', url: '/v1/me', headers });
      expect(answer.statusCode).toBe(401);
    }
  });

  test('in the query is not looked for', async () => {
    expect((await server.get(`/v1/me?access_token=${good}`)).statusCode).toBe(401);
  });

  test('of any bytes is 401, never 5xx and never an echo', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.stringMatching(/^[!-~]{1,80}$/),
          fc.tuple(fc.base64String(), fc.base64String(), fc.base64String()).map((parts) => parts.join('.')),
          fc.tuple(fc.jsonValue(), fc.jsonValue()).map(([header, payload]) => forged(header, payload)),
        ),
        async (token) => {
          const answer = await server.get('/all/v0.1/servers', { authorization: `Bearer ${token}` });
          expect(answer.statusCode).toBe(401);
          if (token.length > 12) expect(answer.body + JSON.stringify(answer.headers)).not.toContain(token);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('an identity provider that is away', () => {
  test('is 503 with Retry-After, neither 401 nor open, and those it knew go on', async () => {
    const away = await apiUnderTest({ snapshot, auth, keys: [key], routes: READ_ROUTES });
    const known = await bearer(key, { sub: 'known' });
    expect((await away.get('/v1/me', known)).statusCode).toBe(200);
    const dark = await apiUnderTest({ snapshot, auth, keys: [key], routes: READ_ROUTES });
    dark.issuer.broken.set('/jwks', 500).set('/.well-known/openid-configuration', 500);
    for (const url of ['/v1/me', '/all/v0.1/servers', '/nothing']) {
      const answer = await dark.get(url, known);
      expect([answer.statusCode, answer.headers['retry-after'], answer.body]).toEqual([
        503,
        '10',
        '{"error":"the identity provider does not answer"}',
      ]);
    }
    expect((await dark.get('/openapi.json')).statusCode).toBe(200);
    away.issuer.broken.set('/jwks', 500);
    expect((await away.get('/v1/me', known)).statusCode).toBe(200);
    await Promise.all([away.close(), dark.close()]);
  });
});
