import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import { compareBytes, lowerBound } from './byte-order.ts';

describe('compareBytes', () => {
  test('orders well-formed strings exactly as their UTF-8 bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), anyText(), (left, right) => {
        const bytes = Buffer.compare(Buffer.from(left), Buffer.from(right));
        expect(Math.sign(compareBytes(left, right))).toBe(bytes);
      }),
    );
  });

  test('puts an emoji after a private-use character, where UTF-16 order has them the other way round', () => {
    expect(compareBytes('\u{1F41D}', '\uE000')).toBeGreaterThan(0);
    const byCodeUnits = ['\uE000', '\u{1F41D}'].toSorted();
    expect(byCodeUnits).toEqual(['\u{1F41D}', '\uE000']);
  });
});

describe('lowerBound', () => {
  test('finds the place a key would be inserted at', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), fc.integer(), (values, key) => {
        const sorted = values.toSorted((a, b) => a - b);
        const expected = sorted.filter((value) => value < key).length;
        expect(lowerBound(sorted, (value) => value < key)).toBe(expected);
      }),
    );
  });
});
