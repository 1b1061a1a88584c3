import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Claims, parseClaims } from './claims.ts';
import { canonicalClaims, firstDifference } from './same.ts';

const sameClaims = (a: Claims, b: Claims): boolean => firstDifference(a, b) === undefined;

describe('equal claims', () => {
  test.each([
    ['a text equals a list of it', { t: 'a' }, { t: ['a'] }, true],
    ['order of elements does not matter', { t: ['a', 'b'] }, { t: ['b', 'a'] }, true],
    ['repeats do not matter', { t: ['a', 'a'] }, { t: 'a' }, true],
    ['order of keys does not matter', { a: 'x', b: 'y' }, { b: 'y', a: 'x' }, true],
    ['none equal none', {}, {}, true],
    ['none differ from some', {}, { t: 'a' }, false],
    ['a subset differs', { t: ['a', 'b'] }, { t: 'a' }, false],
    ['another value differs', { t: 'a' }, { t: 'b' }, false],
    ['an empty list is a claim', { t: [] }, {}, false],
    ['an empty list is not the empty text', { t: [] }, { t: '' }, false],
    ['case differs', { t: 'a' }, { t: 'A' }, false],
    ['an inherited key is no key', { constructor: [] }, {}, false],
  ])('%s', (_rule, a, b, expected) => {
    expect(sameClaims(parseClaims(a), parseClaims(b))).toBe(expected);
    expect(sameClaims(parseClaims(b), parseClaims(a))).toBe(expected);
  });

  test('names the first key that differs', () => {
    expect(firstDifference(parseClaims({ a: 'x', b: 'y' }), parseClaims({ a: 'x', b: 'z' }))).toBe('b');
    expect(firstDifference(parseClaims({ a: 'x' }), parseClaims({ a: 'x', c: 'z' }))).toBe('c');
  });
});

describe('canonicalClaims', () => {
  test('sorts keys and values and drops repeats', () => {
    expect(canonicalClaims(parseClaims({ b: 'x', a: ['d', 'c', 'd'] }))).toBe('{"a":["c","d"],"b":["x"]}');
  });

  test('is the empty text for no claims', () => {
    expect(canonicalClaims(parseClaims({}))).toBe('');
  });

  test('is equal exactly for equal claims, and itself a claims map of the same meaning', () => {
    const text = fc.constantFrom('a', 'b', '', '"', '__proto__');
    const value = fc.oneof(text, fc.array(text, { maxLength: 3 }));
    const claims = fc.dictionary(text, value, { maxKeys: 3 }).map((raw): Claims => parseClaims(raw));
    fc.assert(
      fc.property(claims, claims, (a, b) => {
        expect(canonicalClaims(a) === canonicalClaims(b)).toBe(sameClaims(a, b));
        expect(sameClaims(a, parseClaims(JSON.parse(canonicalClaims(a) || '{}')))).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});
