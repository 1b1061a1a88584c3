import { expect, test } from 'vitest';
import { memberPlace } from './member-place.ts';

const text = '{\n  "a": 1,\n  "b": {\n    "c": ["x", {"d": 2}]\n  }\n}';

test.each([
  [['a'], 2, 8],
  [['b', 'c'], 4, 10],
  [['b', 'c', 1, 'd'], 4, 22],
  [['b', 'missing'], 3, 8],
  [['b', 'c', 7], 4, 10],
])('%j stands at line %i, column %i', (path, line, column) => {
  expect(memberPlace(text, path)).toEqual({ line, column });
});

test('a name that is not there has no place, and neither has anything in no text', () => {
  expect(memberPlace(text, ['z'])).toBeUndefined();
  expect(memberPlace('', ['a'])).toBeUndefined();
});
