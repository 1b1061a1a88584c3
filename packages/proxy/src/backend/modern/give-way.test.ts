import { expect, test } from 'vitest';
import { oldestOfMost } from './give-way.ts';

test.each([
  ['a1 b1 b2 a2 b3', 'b1'],
  ['a1 b1 b2 a2', 'a1'],
  ['a1', 'a1'],
  ['', undefined],
])('of %s, %s gives way', (all, one) => {
  const places = all.split(' ').filter((place) => place !== '');
  expect(oldestOfMost(places, (place) => place.slice(0, 1))).toBe(one);
});
