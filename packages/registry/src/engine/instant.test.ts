import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseInstant } from './instant.ts';

describe('parseInstant', () => {
  test.each([
    ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05'],
    ['2026-01-02t03:04:05z', '2026-01-02T03:04:05'],
    ['2026-01-02T03:04:05.120Z', '2026-01-02T03:04:05.12'],
    ['2026-01-02T03:04:05.000000001Z', '2026-01-02T03:04:05.000000001'],
    ['2026-01-01T00:30:00+02:00', '2025-12-31T22:30:00'],
    ['2026-12-31T23:30:00-01:00', '2027-01-01T00:30:00'],
    ['2016-12-31T23:59:60Z', '2016-12-31T23:59:60'],
    ['0050-06-01T00:00:00Z', '0050-06-01T00:00:00'],
  ])('reads %s', (text, instant) => {
    expect(parseInstant(text)).toBe(instant);
  });

  test.each([
    '2026-01-02',
    '2026-02-30T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:00',
    '2026-01-01 00:00:00Z',
    '2026-01-01T00:00:00.Z',
    '2026-01-01T00:00:00+24:00',
    '0000-01-01T00:00:00+01:00',
    'yesterday',
    '',
  ])('refuses "%s"', (text) => {
    expect(parseInstant(text)).toBeUndefined();
  });

  test('reads a time with as many digits as a document may hold before anybody notices', () => {
    const began = performance.now();
    expect(parseInstant(`2026-01-01T00:00:00.${'0'.repeat(200_000)}1Z`)).toHaveLength(200_021);
    // By the square of the digits it is half a minute.
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  test('compares as strings the way the moments compare', () => {
    const moments = fc.date({ min: new Date(0), max: new Date('9000-01-01'), noInvalidDate: true });
    fc.assert(
      fc.property(moments, moments, (left, right) => {
        const a = parseInstant(left.toISOString()) ?? '';
        const b = parseInstant(right.toISOString()) ?? '';
        expect(a < b).toBe(left.getTime() < right.getTime());
      }),
    );
  });
});
