import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseLossless, serializeLossless } from './lossless.ts';

const limits = { maxBytes: 1_000_000 };
const roundTrip = (text: string): string => serializeLossless(parseLossless(text, limits));

test.each([
  '1.0',
  '1e400',
  '-1E-400',
  '-0',
  '0',
  '0.10',
  '12345678901234567890',
  '9007199254740993',
  '-9007199254740993',
  '1e3',
  '1.5',
  '[1.0,-0]',
  '{"a":{"b":[1e400]}}',
  '[ -0]',
])('%s comes back digit by digit', (text) => {
  expect(roundTrip(text)).toBe(text.replaceAll(' ', ''));
});

test('numbers that survive stay numbers', () => {
  expect(parseLossless('[1, -2, 1.5, 9007199254740991]', limits)).toEqual([
    1, -2, 1.5, 9_007_199_254_740_991,
  ]);
});

test('a number that only its text represents can be told', () => {
  const [one, big, text] = parseLossless('[1, 1.0, "1"]', limits) as unknown[];
  expect([one, big, text].map((value) => typeof value)).toEqual(['number', 'object', 'string']);
});

test('an object that looks like a raw number is data', () => {
  expect(roundTrip('{"rawJSON":"1.0","n":2.0}')).toBe('{"rawJSON":"1.0","n":2.0}');
});

test('__proto__ is a member like any other', () => {
  const text = '{"__proto__":{"polluted":1.0},"constructor":null}';
  expect(roundTrip(text)).toBe(text);
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
});

describe('refusals', () => {
  test.each([
    ['{"a": }', 'json/invalid', 'document is not valid JSON at line 1, column 7'],
    ['', 'json/invalid', 'document is not valid JSON at line 1, column 1'],
  ])('%j', (text, code, message) => {
    expect(() => parseLossless(text, limits)).toThrow(expect.objectContaining({ code, message }));
  });

  test('the size counts in bytes, to the byte', () => {
    expect(parseLossless('"ä"', { maxBytes: 4 })).toBe('ä');
    expect(() => parseLossless('"ä"', { maxBytes: 3, what: 'message' })).toThrow(
      expect.objectContaining({ code: 'json/too-large', message: 'message is larger than 3 bytes' }),
    );
  });

  test('bytes that are not UTF-8', () => {
    expect(() => parseLossless(Buffer.from([0x22, 0xff, 0x22]), limits)).toThrow(
      'document is not UTF-8 text',
    );
  });

  test('nesting that would exhaust the stack', () => {
    const deep = '['.repeat(100_000) + '1.0' + ']'.repeat(100_000);
    expect(() => parseLossless(deep, limits)).toThrow(
      expect.objectContaining({ code: 'json/invalid', message: 'document is nested too deeply' }),
    );
  });

  test('a value without JSON form is a defect, not the text "undefined"', () => {
    expect(() => serializeLossless(undefined)).toThrow('a value has no JSON form');
  });
});

// Compact JSON text with numbers of every spelling; integer-like keys are left out because objects reorder them.
const number = fc.stringMatching(/^-?(?:0|[1-9]\d{0,24})(?:\.\d{1,24})?(?:[eE][+-]?\d{1,3})?$/u);
const key = fc.string().filter((text) => !/^\d+$/u.test(text));
const { text: document } = fc.letrec<{ text: string }>((tie) => ({
  text: fc.oneof(
    { maxDepth: 4 },
    number,
    fc.string().map((text) => JSON.stringify(text)),
    fc.constantFrom('true', 'false', 'null'),
    fc.array(tie('text'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
    fc
      .uniqueArray(fc.tuple(key, tie('text')), { maxLength: 4, selector: ([name]) => name })
      .map((members) => `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`),
  ),
}));

test('any document comes back character by character', () => {
  fc.assert(
    fc.property(document, (text) => {
      expect(roundTrip(text)).toBe(text);
    }),
    { numRuns: 1_000 },
  );
});
