import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonErrorPlace } from './error-place.ts';

test.each([
  ['', 1, 1],
  ['{\n "a": }', 2, 7],
  ['{"a": 1,\n}', 2, 1],
  ['[1 2]', 1, 4],
  ['{"a" 1}', 1, 6],
  ["{'a': 1}", 1, 2],
  ['[1]]', 1, 4],
  ['{"a": [1}', 1, 9],
  ['"a\nb"', 1, 1],
  ['[01]', 1, 3],
  ['<html>', 1, 1],
])('%j breaks at line %d, column %d', (text, line, column) => {
  expect(jsonErrorPlace(text)).toEqual({ line, column });
});

test('finds the place behind a string of several megabytes', () => {
  expect(jsonErrorPlace(`{"a": "${'x'.repeat(10_000_000)}"\n oops}`)).toEqual({ line: 2, column: 2 });
});

test('agrees with JSON.parse on what is valid, for damaged documents', () => {
  const damaged = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', '[', '"', ':', '0', ' ', '\\', '\n', '-'))
    .map(([json, where, insert]) => {
      const at = where % (json.length + 1);
      return json.slice(0, at) + insert + json.slice(insert === '' ? at + 1 : at);
    });
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string(), damaged), (text) => {
      expect(jsonErrorPlace(text) === undefined).toBe(isJson(text));
    }),
    { numRuns: 1_000 },
  );
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
