import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bearerChallenge } from '../resource/authenticate.ts';
import { challengesOf, scopesOf, tokenChallenge } from './challenge.ts';

describe('what a resource says about signing in', () => {
  test.each([
    ['Bearer', [{ scheme: 'bearer' }]],
    ['bearer realm=x', [{ scheme: 'bearer', realm: 'x' }]],
    ['Basic realm="a, Bearer realm=\\"b\\""', [{ scheme: 'basic', realm: 'a, Bearer realm="b"' }]],
    [
      'Basic realm="a", Bearer realm="b", scope="x y"',
      [{ scheme: 'basic' }, { realm: 'b', scopes: ['x', 'y'] }],
    ],
    ['Negotiate YWJj==, Bearer resource_metadata="https://a/b"', [{}, { resourceMetadata: 'https://a/b' }]],
    ['Negotiate, , Bearer error=invalid_token', [{}, { error: 'invalid_token' }]],
    ['DPoP algs="ES256", Bearer', [{ scheme: 'dpop' }, { scheme: 'bearer' }]],
  ])('%s', async (header, expected) => {
    const found = await challengesOf(header);
    expect(found).toHaveLength(expected.length);
    expect(found).toMatchObject(expected);
  });

  test.each(['', '"', 'Bearer realm="open', '===', 'Bearer\nrealm=x', 'ä'])(
    'a value that is none says nothing: %j',
    async (header) => {
      expect(await tokenChallenge(header)).toBeUndefined();
    },
  );

  test('the first that asks for a token counts, whatever stands before it', async () => {
    const found = await tokenChallenge('Digest realm="d", nonce="n", Bearer scope="a b a"');
    expect(found).toMatchObject({ scheme: 'bearer', scopes: ['a', 'b'] });
  });

  test('any challenge of ours is read back as it was meant, behind any others', async () => {
    const printable = fc.string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((one) => String.fromCharCode(one)),
    });
    const others = fc.constantFrom('', 'Negotiate, ', 'Basic realm="q\\"x", ', 'Negotiate abc=, ', ' , ');
    await fc.assert(
      fc.asyncProperty(printable, printable, others, async (realm, resourceMetadata, before) => {
        const header = before + bearerChallenge({ realm, resourceMetadata, error: 'invalid_token' });
        expect(await tokenChallenge(header)).toMatchObject({
          realm,
          resourceMetadata,
          error: 'invalid_token',
        });
      }),
    );
  });

  test('no value makes it fail, and what it finds was written there', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 200 }), async (header) => {
        for (const { scheme, realm } of await challengesOf(header)) {
          expect(header.toLowerCase()).toContain(scheme);
          for (const letter of Array.from(realm ?? '')) expect(header).toContain(letter);
        }
      }),
    );
  });

  test('a long value is read at once', async () => {
    const started = performance.now();
    await challengesOf(`Bearer ${'a="\\"", '.repeat(2_000)}`);
    await challengesOf(', '.repeat(8_000));
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

test('scopes are the tokens of RFC 6749, each once, and not too many', () => {
  expect(scopesOf(' a  b a "c" \u0007 ')).toEqual(['a', 'b']);
  expect(scopesOf('')).toBeUndefined();
  expect(scopesOf(Array.from({ length: 5_000 }, (_, at) => `s${at}`).join(' '))).toHaveLength(100);
});
