import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TokenOutcome } from '../token/outcome.ts';
import type { TokenVerifier } from '../token/verifier.ts';
import { tokenIdentity } from '../token/identity.ts';
import {
  authenticate,
  describeRefusal,
  bearerToken,
  MAX_TOKEN_LENGTH,
  bearerChallenge,
  type Refusal,
} from './authenticate.ts';
import { metadataUrl, resourceMetadata } from './metadata.ts';

describe('bearerToken', () => {
  test.each<[string, string[], string]>([
    ['a token', ['Bearer abc.DEF-_~+/9=='], 'abc.DEF-_~+/9=='],
    ['another case of the scheme', ['bEaReR abc'], 'abc'],
    ['several blanks', ['Bearer   abc'], 'abc'],
    ['the longest token', [`Bearer ${'a'.repeat(MAX_TOKEN_LENGTH)}`], 'a'.repeat(MAX_TOKEN_LENGTH)],
  ])('takes %s', (_name, headers, token) => {
    expect(bearerToken(headers)).toEqual({ kind: 'token', token });
  });

  test.each<[string, string[], string]>([
    ['no header', [], 'missing'],
    ['two headers', ['Bearer a', 'Bearer a'], 'repeated'],
    ['an empty header', [''], 'wrong-scheme'],
    ['Basic', ['Basic YTpi'], 'wrong-scheme'],
    ['no blank', ['Bearerabc'], 'wrong-scheme'],
    ['a tab', ['Bearer\tabc'], 'wrong-scheme'],
    ['a blank before', [' Bearer abc'], 'wrong-scheme'],
    ['only the scheme', ['Bearer'], 'empty'],
    ['only the scheme and blanks', ['Bearer  '], 'empty'],
    ['too long a token', [`Bearer ${'a'.repeat(MAX_TOKEN_LENGTH + 1)}`], 'too-long'],
    ['joined headers', ['Bearer a, Bearer b'], 'malformed'],
    ['a trailing blank', ['Bearer a '], 'malformed'],
    ['a quote', ['Bearer "a"'], 'malformed'],
    ['a Latin-1 byte', ['Bearer a\u00E9'], 'malformed'],
    ['a NUL', ['Bearer a\u0000'], 'malformed'],
    ['only padding', ['Bearer =='], 'malformed'],
  ])('refuses %s', (_name, headers, fault) => {
    expect(bearerToken(headers)).toEqual({ kind: 'fault', fault });
  });
});

describe('bearerToken, for any header', () => {
  const unit = fc.constantFrom(
    'B',
    'bearer ',
    'Bearer',
    ' ',
    'a',
    '=',
    ',',
    '"',
    '\t',
    '\r\n',
    'é',
    '\u0000',
  );
  const text = fc.oneof(
    fc.string({ unit }),
    fc.stringMatching(/^[Bb]earer {0,2}[A-Za-z0-9._~+/=, -]{0,20}$/),
    fc.stringMatching(/^[Bb]earer [A-Za-z0-9._-]{1,20}={0,2}$/),
  );

  test('is a fault, or exactly what stands behind the scheme', () => {
    fc.assert(
      fc.property(text, (header) => {
        const read = bearerToken([header]);
        if (read.kind === 'fault') return;
        expect(read.token).toMatch(/^[\w.~+/-]+=*$/);
        expect(header.toLowerCase()).toMatch(/^bearer +\S+$/);
        expect(header.endsWith(` ${read.token}`)).toBe(true);
      }),
    );
  });

  test('is a fault for several headers, whatever they say', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 2, maxLength: 3 }), (headers) => {
        expect(bearerToken(headers)).toEqual({ kind: 'fault', fault: 'repeated' });
      }),
    );
  });

  test('takes every token of RFC 6750 back out', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9._~+/-]{1,40}={0,2}$/), (token) => {
        expect(bearerToken([`Bearer ${token}`])).toEqual({ kind: 'token', token });
      }),
    );
  });
});

describe('authenticate', () => {
  const identity = tokenIdentity({ sub: 'a' }, 'a');
  const accepted: TokenOutcome = { kind: 'identity', identity, expiresAt: 1 };
  const verifier = (outcome: TokenOutcome, known?: TokenOutcome): TokenVerifier => ({
    verify: () => Promise.resolve(outcome),
    known: () => known,
    ready: () => Promise.resolve([]),
    close() {},
  });

  test('answers at once for a known token', () => {
    expect(authenticate(['Bearer a'], verifier(accepted, accepted))).toEqual(accepted);
  });

  test('is 401 invalid_request without asking for a header that is no bearer token', () => {
    expect(authenticate(['Basic x'], verifier(accepted))).toEqual({
      kind: 'refused',
      error: 'invalid_request',
      reason: 'wrong-scheme',
    });
  });

  test('is 401 invalid_token for a refused token', async () => {
    expect(await authenticate(['Bearer a'], verifier({ kind: 'invalid', reason: 'expired' }))).toEqual({
      kind: 'refused',
      error: 'invalid_token',
      reason: 'expired',
    });
  });

  test('is 503 with a time to come back when the provider is away', async () => {
    const away: TokenOutcome = { kind: 'unavailable', cause: new TypeError('secret detail') };
    expect(await authenticate(['Bearer a'], verifier(away))).toEqual({
      kind: 'unavailable',
      retryAfterSeconds: 10,
    });
  });

  test.each<[Refusal['error'], Refusal['reason'], string, string]>([
    [
      'invalid_request',
      'missing',
      'missing or malformed authorization header',
      'a bearer token is needed in the Authorization header',
    ],
    ['invalid_token', 'expired', 'token validation failed', 'the token has expired'],
    ['invalid_token', 'unknown-key', 'token validation failed', 'the key of the token is unknown'],
  ])('%s %s is told tersely or with its reason', (error, reason, terse, full) => {
    const refusal: Refusal = { kind: 'refused', error, reason };
    expect([describeRefusal(refusal, 'terse'), describeRefusal(refusal, 'reason')]).toEqual([terse, full]);
  });
});

describe('bearerChallenge', () => {
  test('holds every parameter', () => {
    expect(
      bearerChallenge({
        realm: 'mcp-registry',
        error: 'invalid_token',
        description: 'token validation failed',
        resourceMetadata: 'https://registry.example/.well-known/oauth-protected-resource',
        scopes: ['a', 'b'],
      }),
    ).toBe(
      'Bearer realm="mcp-registry", error="invalid_token", error_description="token validation failed", ' +
        'resource_metadata="https://registry.example/.well-known/oauth-protected-resource", scope="a b"',
    );
  });

  test('is the bare scheme without parameters', () => {
    expect(bearerChallenge({})).toBe('Bearer');
  });

  test('lets no text end its quotes or the header', () => {
    expect(bearerChallenge({ realm: 'a"b\\c\r\nX-Evil: 1' })).toBe(
      String.raw`Bearer realm="a\"b\\cX-Evil: 1"`,
    );
  });

  test('is one quoted string for any text', () => {
    // Every code point, without the library's table of them, which takes seconds to make.
    const text = fc.array(fc.integer({ min: 0, max: 0x10_ff_ff })).map((all) => String.fromCodePoint(...all));
    const common = fc.string({
      unit: fc.constantFrom('"', '\\', '\r', '\n', '\u0000', '\u007F', 'é', ' ', 'a'),
    });
    fc.assert(
      fc.property(fc.oneof(text, common), (realm) => {
        expect(bearerChallenge({ realm })).toMatch(/^Bearer realm="(?:[ !#-[\]-~]|\\["\\])*"$/u);
      }),
    );
  });
});

describe('protected resource metadata', () => {
  test('names the resource and where to sign in', () => {
    expect(resourceMetadata({ resource: 'https://r.test', issuers: ['https://idp.test'] })).toEqual({
      resource: 'https://r.test',
      authorization_servers: ['https://idp.test'],
      bearer_methods_supported: ['header'],
    });
    expect(resourceMetadata({ resource: 'https://r.test', issuers: [], scopes: ['openid'] })).toMatchObject({
      scopes_supported: ['openid'],
    });
  });

  test.each([
    ['https://r.test', 'https://r.test/.well-known/oauth-protected-resource'],
    ['https://r.test/', 'https://r.test/.well-known/oauth-protected-resource'],
    ['https://r.test:8443/mcp?x=1#y', 'https://r.test:8443/.well-known/oauth-protected-resource/mcp'],
    ['http://r.test/a/b', 'http://r.test/.well-known/oauth-protected-resource/a/b'],
  ])('of %s is at %s', (resource, url) => {
    expect(metadataUrl(resource)).toBe(url);
  });

  test.each(['r.test', '', 'ftp://r.test'])('%j is no resource', (resource) => {
    expect(() => metadataUrl(resource)).toThrow(expect.objectContaining({ code: 'auth/invalid-provider' }));
  });
});
