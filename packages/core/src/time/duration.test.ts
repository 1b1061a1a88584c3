import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration, parseDuration } from './duration.ts';

test.each([
  ['30s', 30_000],
  ['1m', 60_000],
  ['2m30s', 150_000],
  ['1.5h', 5_400_000],
  ['500ms', 500],
  ['.5s', 500],
  ['1.s', 1_000],
  ['-2m', -120_000],
  ['+2m', 120_000],
  ['0', 0],
  ['1us', 0.001],
  ['1µs', 0.001],
  ['1h0m0.1s', 3_600_100],
])('reads %s as %d ms', (text, milliseconds) => {
  expect(parseDuration(text)).toBe(milliseconds);
});

test.each([
  '',
  '5',
  '1d',
  '1m 2s',
  ' 1s',
  '1s ',
  's',
  '.s',
  '1e3s',
  '--1s',
  '1S',
  '0x1s',
  '9999999999h',
  '1.2.3s',
])('refuses "%s" and quotes it', (text) => {
  expect(() => parseDuration(text)).toThrow(`"${text}" is not a duration`);
});

test.each([
  [1_800_000, '30m0s'],
  [30_000, '30s'],
  [5_400_000, '1h30m0s'],
  [1_500, '1.5s'],
  [500, '500ms'],
  [1.5, '1.5ms'],
  [0.001, '1µs'],
  [0, '0s'],
  [-90_000, '-1m30s'],
])('writes %d ms as %s', (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text);
});

test('what is written reads back the same, to the microsecond', () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e12, max: 1e12 }), (microseconds) => {
      expect(parseDuration(formatDuration(microseconds / 1_000))).toBe(
        microseconds === 0 ? 0 : microseconds / 1_000,
      );
    }),
  );
});

test('any text is either read to a finite number or refused', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.hmsnuµ]{0,12}$/u)), (text) => {
      try {
        expect(Number.isFinite(parseDuration(text))).toBe(true);
      } catch (error) {
        expect(error).toMatchObject({ code: 'usage/invalid-value' });
      }
    }),
  );
});
