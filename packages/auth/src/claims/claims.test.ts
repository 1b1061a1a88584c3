import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { CLAIM_LIMITS, claimsViolations, isUnlabeled, parseClaims } from './claims.ts';

const long = 'é'.repeat(513); // 1026 bytes in UTF-8

describe('claims that are refused', () => {
  test.each([
    ['no map', 'x', 'claims must be a map of strings or arrays of strings'],
    ['a list', [], 'claims must be a map of strings or arrays of strings'],
    ['null', null, 'claims must be a map of strings or arrays of strings'],
    ['a number', { k: 1 }, 'claim "k": value must be a string or array of strings'],
    ['a boolean', { k: true }, 'claim "k": value must be a string or array of strings'],
    ['null inside', { k: null }, 'claim "k": value must be a string or array of strings'],
    ['a nested map', { k: { a: 'b' } }, 'claim "k": value must be a string or array of strings'],
    ['a nested list', { k: ['a', ['b']] }, 'claim "k": array element [1] must be a string'],
    ['a number in a list', { k: ['a', 1] }, 'claim "k": array element [1] must be a string'],
    ['a long value', { k: long }, 'claim "k": value is too long'],
    ['a long element', { k: ['a', long] }, 'claim "k": array element [1] is too long'],
    [
      'many values',
      { k: Array(257).fill('a') },
      'claim "k": array has 257 elements, at most 256 are allowed',
    ],
    ['a quote in a key', { 'a"b\n': 1 }, 'claim "a\\"b\\n": value must be a string or array of strings'],
    [
      'a number under __proto__',
      JSON.parse('{"__proto__":1}'),
      'claim "__proto__": value must be a string or array of strings',
    ],
  ])('%s', (_name, value: unknown, message) => {
    expect(claimsViolations(value).map((one) => one.message)).toEqual([message]);
    expect(() => parseClaims(value)).toThrow(expect.objectContaining({ code: 'claims/invalid', message }));
  });

  test('10,000 keys are one violation', () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, 1]));
    expect(claimsViolations(many)).toEqual([{ message: 'claims have 10000 keys, at most 64 are allowed' }]);
  });

  test('a long key is shown by its beginning only', () => {
    const [violation] = claimsViolations({ ['k'.repeat(5000)]: 'x' });
    expect(violation?.message).toBe(`claim "${'k'.repeat(100)}…": key is too long`);
  });

  test('every wrong key is named', () => {
    expect(claimsViolations({ a: 1, b: 'x', c: [2] }).map((one) => one.key)).toEqual(['a', 'c']);
  });
});

describe('claims that are accepted', () => {
  test.each([
    ['the limits themselves', { k: Array(256).fill('v'.repeat(CLAIM_LIMITS.bytesPerText)) }],
    ['64 keys', Object.fromEntries(Array.from({ length: 64 }, (_, index) => [`k${index}`, 'x']))],
    ['the empty list', { k: [] }],
    ['the empty key and text', { '': '' }],
    ['an address as key', { 'https://app.example/org': 'acme' }],
  ])('%s', (_name, value) => {
    expect({ ...parseClaims(value) }).toEqual(value);
  });

  test('keys that JavaScript objects inherit survive as plain data', () => {
    const json = '{"__proto__":"a","constructor":["b"],"toString":"c"}';
    const claims = parseClaims(JSON.parse(json));
    expect(JSON.stringify(claims)).toBe(json);
    expect(Object.getPrototypeOf(claims)).toBeNull();
  });
});

test('only a map without keys is unlabeled', () => {
  expect(isUnlabeled(parseClaims({}))).toBe(true);
  expect(isUnlabeled(parseClaims({ k: [] }))).toBe(false);
  expect(isUnlabeled(parseClaims(JSON.parse('{"__proto__":"x"}')))).toBe(false);
});

test('any JSON value is either parsed without loss or refused as claims', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 3 }), (value) => {
      const text = JSON.stringify(value);
      try {
        expect(JSON.stringify(parseClaims(JSON.parse(text)))).toBe(text);
      } catch (error) {
        expect(hasCode(error, 'claims/invalid')).toBe(true);
        expect(claimsViolations(JSON.parse(text)).length).toBeGreaterThan(0);
      }
    }),
  );
});
