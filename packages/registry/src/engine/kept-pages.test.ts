import { expect, test } from 'vitest';
import { KeptPages, Callers, type PageKey } from './kept-pages.ts';

const MEBI = 1024 * 1024;
const view = { registry: 'all', visibility: 'v', visible: () => true };

test('forgets the pages asked for least lately, counting bytes of their own and the words they were asked with', () => {
  const pages = new KeptPages();
  const [state, etag] = [pages.stateOf(view), '"x"'];
  const large = { etag, pieces: [Buffer.alloc(MEBI)] };
  const word = (index: number): PageKey => ({ state, text: `large ${index}` });
  for (let index = 0; index < 40; index += 1) pages.set(word(index), large);
  expect(pages.get(word(0))).toBeUndefined();
  expect(pages.get(word(39))).toBe(large);
  // A view knows of no page that is not kept any more.
  expect(state.pages.size).toBeLessThan(33);
  const small = { etag, pieces: [Buffer.alloc(1), Buffer.alloc(1)] };
  const key = (index: number): PageKey => ({ state, text: `${index} ${'x'.repeat(MEBI / 2)}` });
  for (let index = 0; index < 40; index += 1) pages.set(key(index), small);
  expect(pages.get(key(0))).toBeUndefined();
  expect(pages.get(key(39))).toBe(small);
});

test('forgets the pages of whoever sees what changed, also one that was being made, and no others', async () => {
  const before = new KeptPages();
  const page = { etag: '"x"', pieces: [] };
  const [hit, spared] = [before.stateOf(view), before.stateOf({ ...view, registry: 'other' })];
  const keys = [hit, spared].map((state, index) => ({ state, text: String(index) }));
  for (const key of keys) before.set(key, page);
  const late = { state: hit, text: 'late' };
  const making = Promise.withResolvers<typeof page>();
  const made = before.make(late, { page: making.promise, callers: new Callers({ destroyed: false }) });
  const after = before.after(new Map([['all', new Set([0])]]));
  making.resolve(page);
  await made;
  expect([...keys, late].map((key) => after.get(key))).toEqual([undefined, page, undefined]);
  // A request that began before the change finishes on what it saw.
  const older = { state: before.stateOf({ ...view, visibility: 'w' }), text: 'older' };
  before.set(older, page);
  expect(after.get(older)).toBeUndefined();
});
