import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareBytes, lowerBound, withChanges } from './byte-order.ts';

describe('compareBytes', () => {
  it('orders well-formed strings exactly as their UTF-8 bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }), (left, right) => {
        const bytes = Buffer.compare(Buffer.from(left), Buffer.from(right));
        expect(Math.sign(compareBytes(left, right))).toBe(bytes);
      }),
    );
  });

  it('puts an emoji after a private-use character, where UTF-16 order has them the other way round', () => {
    expect(compareBytes('\u{1F41D}', '\uE000')).toBeGreaterThan(0);
    const byCodeUnits = ['\uE000', '\u{1F41D}'].toSorted();
    expect(byCodeUnits).toEqual(['\u{1F41D}', '\uE000']);
  });
});

describe('lowerBound', () => {
  it('finds the place a key would be inserted at', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), fc.integer(), (values, key) => {
        const sorted = values.toSorted((a, b) => a - b);
        const expected = sorted.filter((value) => value < key).length;
        expect(lowerBound(sorted, (value) => value < key)).toBe(expected);
      }),
    );
  });
});

describe('withChanges', () => {
  it('replaces, adds and leaves out, and keeps the order', () => {
    const keys = fc.uniqueArray(fc.string({ maxLength: 2 }));
    const change = fc.tuple(fc.string({ maxLength: 2 }), fc.boolean());
    fc.assert(
      fc.property(keys, fc.array(change), (before, changed) => {
        const items = before.toSorted(compareBytes).map((key) => ({ key, isNew: false }));
        const changes = new Map(
          changed.map(([key, stays]) => [key, stays ? { key, isNew: true } : undefined]),
        );
        const expected = new Map(items.map((item) => [item.key, item]));
        for (const [key, item] of changes) {
          if (item === undefined) expected.delete(key);
          else expected.set(key, item);
        }
        const sorted = [...expected.values()].toSorted((a, b) => compareBytes(a.key, b.key));
        expect(withChanges(items, changes)).toEqual(sorted);
      }),
    );
  });

  it('takes more changes than one call takes arguments', () => {
    const items = Array.from({ length: 200_000 }, (_, index) => ({ key: String(index).padStart(6, '0') }));
    const even = items.filter((_, index) => index % 2 === 0);
    expect(withChanges([], new Map(even.map((item) => [item.key, item])))).toEqual(even);
    expect(withChanges(items, new Map(even.map(({ key }) => [key, undefined])))).toHaveLength(100_000);
  });
});
