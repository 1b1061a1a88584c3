import { expect, test } from 'vitest';
import { delegationOf } from './delegation.ts';

const nested = (count: number): object =>
  Array.from({ length: count }).reduce<object>((act, _, at) => ({ sub: `${at}`, act }), { sub: 'last' });

test('a token that nobody handed on has no chain', () => {
  expect(delegationOf({ claims: { sub: 'a' } })).toBeUndefined();
});

test('a chain tells ten actors, and how many there are beyond', () => {
  expect(delegationOf({ claims: { act: { iss: 'i', sub: 'a', more: 1, act: { sub: 'b' } } } })).toEqual({
    chain: [{ iss: 'i', sub: 'a' }, { sub: 'b' }],
    truncated: false,
  });
  const long = delegationOf({ claims: { act: nested(11) } });
  expect(long?.chain).toHaveLength(10);
  expect(long).toMatchObject({ truncated: true, omitted: 2 });
  expect(delegationOf({ claims: { act: nested(500) } })).toMatchObject({ truncated: true, omitted: 90 });
});

test.each([
  ['a', 'an actor is no object'],
  [null, 'an actor is no object'],
  [['a'], 'an actor is no object'],
  [{}, 'an actor has neither iss nor sub'],
  [{ sub: 7 }, 'an actor has neither iss nor sub'],
])('a chain ends before an actor that is told as %j', (act, malformedReason) => {
  const fault = { truncated: false, malformed: true, malformedReason };
  expect(delegationOf({ claims: { act } })).toEqual({ chain: [], ...fault });
  expect(delegationOf({ claims: { act: { sub: 'a', act } } })).toEqual({ chain: [{ sub: 'a' }], ...fault });
});
