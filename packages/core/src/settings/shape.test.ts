import { expect, test } from 'vitest';
import { anything, listOf, members, readAs, text, textThat, wholeNumber } from './shape.ts';

const shape = members({ name: text, numbers: listOf(wholeNumber(1)), other: anything });

test('what is of a shape is read, without what the shape does not name', () => {
  const value = { name: 'a', numbers: [1, 2], other: { any: null }, more: true };
  expect(readAs(shape, value)).toEqual({ name: 'a', numbers: [1, 2], other: { any: null } });
  expect(readAs(shape, { name: 'a', numbers: [] })).toEqual({ name: 'a', numbers: [] });
});

test.each([
  [undefined],
  [null],
  ['a'],
  [[]],
  [{}],
  [{ name: 1, numbers: [] }],
  [{ name: 'a', numbers: [0] }],
])('what is not is nothing: %j', (value) => {
  expect(readAs(shape, value)).toBeUndefined();
});

test('a fault of the shape itself is not taken for one of the value', () => {
  const broken = textThat(() => {
    throw new TypeError('broken');
  }, 'is no text');
  expect(() => readAs(broken, 'a')).toThrow('broken');
});
