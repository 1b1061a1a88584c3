import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { comparePrecedence, compareVersions, newestVersion } from './version-order.ts';

describe('compareVersions', () => {
  test.each([
    ['1.2.3', '1.10.0'],
    ['v1.2.3', '1.2.4'],
    ['1.0', '1.0.1'],
    ['1', '1.1'],
    ['1.0.0-alpha', '1.0.0-alpha.1'],
    ['1.0.0-alpha.1', '1.0.0-alpha.beta'],
    ['1.0.0-beta.2', '1.0.0-beta.11'],
    ['1.0.0-rc.1', '1.0.0'],
    ['1.9.0', '2.0.0-beta'],
    ['2025.9.30', '2025.10.01'],
    ['1.0.20251231001', '1.0.20260112001'],
    ['1.2.3.4', '1.2.3.10'],
    ['99999999999999999998.0.0', '99999999999999999999.0.0'],
    ['main', '0.0.1'],
    ['abc', 'abd'],
    ['1.x', '0.0.0-0'],
  ])('puts %s before %s', (older, newer) => {
    expect(compareVersions(older, newer)).toBeLessThan(0);
    expect(compareVersions(newer, older)).toBeGreaterThan(0);
  });

  test('is a total order: antisymmetric, transitive, and zero only for equal strings', () => {
    const number = fc.constantFrom('0', '1', '01', '2', '9', '10', '11');
    const like = fc
      .tuple(
        fc.constantFrom('', 'v'),
        fc.array(number, { minLength: 1, maxLength: 4 }),
        fc.constantFrom('', '-0', '-1', '-a', '-a.1', '-a.b', '-10', '-x-y', '-'),
        fc.constantFrom('', '+1', '+b'),
      )
      .map(([v, numbers, pre, build]) => v + numbers.join('.') + pre + build);
    const version = fc.oneof(like, fc.constantFrom('5x', 'main', '10', 'v', '1.', ''), fc.string());
    fc.assert(
      fc.property(version, version, version, (a, b, c) => {
        expect(Math.sign(compareVersions(a, b))).toBe(-Math.sign(compareVersions(b, a)) + 0);
        expect(compareVersions(a, b) === 0).toBe(a === b);
        if (compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0) {
          expect(compareVersions(a, c)).toBeLessThanOrEqual(0);
        }
        if (comparePrecedence(a, b) < 0) expect(compareVersions(a, b)).toBeLessThan(0);
      }),
      { numRuns: 5_000 },
    );
  });
});

test('comparePrecedence sees no difference in build metadata, a leading v and padding zeros', () => {
  expect(comparePrecedence('1.0', 'v1.0.0')).toBe(0);
  expect(comparePrecedence('1.0.0+a', '1.0.0+b')).toBe(0);
  expect(comparePrecedence('01.2', '1.2.0')).toBe(0);
});

test('newestVersion does not depend on the order of what it is given', () => {
  expect(newestVersion([])).toBeUndefined();
  expect(newestVersion(['1.9.0', '2.0.0-beta', 'main', '1.10.0'])).toBe('2.0.0-beta');
  fc.assert(
    fc.property(
      fc.shuffledSubarray(['1.0', '1.0.0', 'v1', '2', '2.0', 'x'], { minLength: 6 }),
      (versions) => {
        expect(newestVersion(versions)).toBe('2.0');
      },
    ),
  );
});
