import { expect, it } from 'vitest';
import { KeptPages } from './kept-pages.ts';

it('forgets the pages asked for least lately, counting bytes of their own and the words they were asked with', () => {
  const pages = new KeptPages();
  const [mebi, etag] = [1024 * 1024, '"x"'];
  const large = { etag, pieces: [Buffer.alloc(mebi)] };
  for (let index = 0; index < 40; index += 1) pages.set(`large ${String(index)}`, large);
  expect(pages.get('large 0')).toBeUndefined();
  expect(pages.get('large 39')).toBe(large);
  const small = { etag, pieces: [Buffer.alloc(1), Buffer.alloc(1)] };
  const key = (index: number): string => `${String(index)} ${'x'.repeat(mebi / 2)}`;
  for (let index = 0; index < 40; index += 1) pages.set(key(index), small);
  expect(pages.get(key(0))).toBeUndefined();
  expect(pages.get(key(39))).toBe(small);
});
