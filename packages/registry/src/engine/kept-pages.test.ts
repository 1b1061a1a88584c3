import { expect, test } from 'vitest';
import { KeptPages, type Page, type PageKey } from './kept-pages.ts';

const MEBI = 1024 * 1024;
const view = { visible: () => true, classes: 'all', fingerprint: 'v' } as const;
const caller = { destroyed: false };
const remade = { etag: '"remade"', pieces: [] };

/** Has the page made where it is not kept. */
function ask(pages: KeptPages, key: PageKey, page: Page = remade): Page {
  const given = pages.page(key, caller, () => page);
  if (given instanceof Promise) throw new Error('no page takes long here');
  return given;
}

test('forgets the pages asked for least lately, counting bytes of their own and the words they were asked with', () => {
  const pages = new KeptPages();
  const [state, etag] = [pages.stateOf('all', view), '"x"'];
  const large = { etag, pieces: [Buffer.alloc(MEBI)] };
  const word = (index: number): PageKey => ({ state, text: `large ${index}` });
  for (let index = 0; index < 40; index += 1) ask(pages, word(index), large);
  // A view knows of no page that is not kept any more.
  expect(state.pages.size).toBeLessThan(33);
  expect(ask(pages, word(39))).toBe(large);
  expect(ask(pages, word(0))).toBe(remade);
  const small = { etag, pieces: [Buffer.alloc(1), Buffer.alloc(1)] };
  const key = (index: number): PageKey => ({ state, text: `${index} ${'x'.repeat(MEBI / 2)}` });
  for (let index = 0; index < 40; index += 1) ask(pages, key(index), small);
  expect(ask(pages, key(39))).toBe(small);
  expect(ask(pages, key(0))).toBe(remade);
});

test('forgets the pages of whoever sees what changed, also one that was being made, and no others', async () => {
  const before = new KeptPages();
  const page = { etag: '"x"', pieces: [] };
  const keys = ['all', 'other'].map((name) => ({ state: before.stateOf(name, view), text: name }));
  for (const key of keys) ask(before, key, page);
  const late = { state: before.stateOf('all', view), text: 'late' };
  const making = Promise.withResolvers<Page>();
  const made = before.page(late, caller, () => making.promise);
  const after = before.after(new Map([['all', new Set([0])]]));
  making.resolve(page);
  expect(await made).toBe(page);
  expect([...keys, late].map((key) => ask(after, key))).toEqual([remade, page, remade]);
  // A request that began before the change finishes on what it saw.
  const older = { state: before.stateOf('all', { ...view, fingerprint: 'w' }), text: 'older' };
  ask(before, older, page);
  expect(ask(after, older)).toBe(remade);
});

test('makes a page once for all who ask while it is made, and for as long as one of them waits', async () => {
  const pages = new KeptPages();
  const key = { state: pages.stateOf('all', view), text: 'slow' };
  const callers = [{ destroyed: false }, { destroyed: false }];
  const making = Promise.withResolvers<Page>();
  let isWanted = (): boolean => false;
  const asked = callers.map(async (one) =>
    pages.page(key, one, (wanted) => {
      isWanted = wanted;
      return making.promise;
    }),
  );
  for (const one of callers) {
    expect(isWanted()).toBe(true);
    one.destroyed = true;
  }
  expect(isWanted()).toBe(false);
  making.resolve(remade);
  expect(await Promise.all(asked)).toEqual([remade, remade]);
});
