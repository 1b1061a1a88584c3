import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { printableLog } from './printable-log.ts';

test.each([
  ['\u001B[31mred\u001B[0m\n', 'red\n'],
  ['a\tb\r\nc\n', 'a\tb\nc\n'],
  ['\u001B]0;title\u0007', '�]0;title�'],
  ['\u001B[2Jcleared', '�[2Jcleared'],
  ['over\rwritten', 'over�written'],
  ['\u202Egnp.exe', '�gnp.exe'],
  ['\u009B2J', '�2J'],
  ['ünïcode ✓', 'ünïcode ✓'],
])('%j is shown as %j', (text, shown) => {
  expect(printableLog(text)).toBe(shown);
});

test('nothing that a terminal could obey is left, however it was put together', () => {
  const hostile = fc.array(
    fc.constantFrom('\u001B', '[', '0', ';', 'm', '\u009B', '\r', '\n', '\t', 'x', '\u0007'),
  );
  fc.assert(
    fc.property(hostile, (parts) => {
      expect(printableLog(parts.join(''))).toMatch(/^[^\p{Cc}\p{Cf}]*(?:[\n\t][^\p{Cc}\p{Cf}]*)*$/u);
    }),
  );
});
