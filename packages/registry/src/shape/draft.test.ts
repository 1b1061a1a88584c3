import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { draftOf } from './draft.ts';
import { duration, nonEmpty } from './texts.ts';

const shape = z.strictObject({
  name: nonEmpty,
  on: z.boolean().default(false),
  every: duration().prefault('1m'),
  kind: z.enum(['a', 'b']).optional(),
  list: z.array(z.strictObject({ path: nonEmpty.optional(), claims: z.unknown() })),
  block: z.strictObject({ count: z.number() }).nullable().optional(),
});

test.each<[what: string, written: unknown, draft: unknown]>([
  ['a text that is too short, an unknown choice', { name: '', kind: 'c' }, { name: '', kind: 'c' }],
  ['texts of what becomes another value', { every: 'soon' }, { every: 'soon' }],
  ['no text where one is wanted', { name: 5, every: 3, on: 'yes' }, {}],
  ['items, also those that are none', { list: [{ path: 1 }, 5] }, { list: [{}, undefined] }],
  ['members that nobody knows', { other: [1], list: [{ more: 2 }] }, { other: [1], list: [{ more: 2 }] }],
  ['a block that is empty', { block: null }, {}],
  ['no map', [1], undefined],
])('a draft keeps what can be read: %s', (_, written, draft) => {
  expect(draftOf(shape, written)).toEqual(draft);
});

test('a member whose type is wrong stays, so that rules see that it was given', () => {
  expect(Object.keys(draftOf(shape, { name: 5, block: null }) ?? {})).toEqual(['name', 'block']);
});

test('no value makes a draft fail, and what is valid is its own draft', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(() => draftOf(shape, { name: value, list: value, block: value })).not.toThrow();
      expect(draftOf(z.strictObject({ claims: z.unknown() }), { claims: value })).toEqual({ claims: value });
    }),
  );
});
