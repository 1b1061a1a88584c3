import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compareBytes } from '../store/reads/byte-order.ts';
import { SortedList } from './sorted-list.ts';

interface Item {
  readonly key: string;
  readonly isNew: boolean;
}

/** So many that they fill several leaves, in steps that leave room between them. */
const MANY = Array.from({ length: 2_000 }, (_, index) => ({
  key: String(index).padStart(6, '0'),
  isNew: false,
}));

describe('SortedList', () => {
  const keys = fc.oneof(
    fc.string({ maxLength: 2 }),
    fc.nat(2_100).map((nat) => String(nat).padStart(6, '0')),
  );
  const change = fc.tuple(keys, fc.boolean());

  test('replaces, adds and leaves out, keeps the order, and leaves the list before as it was', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(fc.array(change)), (isLarge, steps) => {
        const expected = new Map((isLarge ? MANY : []).map((item): [string, Item] => [item.key, item]));
        let list = SortedList.of<Item>([...expected.values()]);
        for (const step of steps) {
          const before = [...list];
          const changes = new Map(
            step.map(([key, stays]) => [key, stays ? { key, isNew: true } : undefined]),
          );
          for (const [key, item] of changes) {
            if (item === undefined) expected.delete(key);
            else expected.set(key, item);
          }
          const next = list.with(changes);
          expect([...list]).toEqual(before);
          list = next;
        }
        const sorted = [...expected.values()].toSorted((a, b) => compareBytes(a.key, b.key));
        expect([...list]).toEqual(sorted);
        expect(list).toHaveLength(sorted.length);
      }),
    );
  });

  test('finds an item, and reads on from where a key is or would be', () => {
    const list = SortedList.of(MANY).with(new Map([['000700', undefined]]));
    fc.assert(
      fc.property(keys, (key) => {
        const rest = MANY.filter((item) => item.key !== '000700' && compareBytes(item.key, key) >= 0);
        expect(list.find(key)).toBe(rest[0]?.key === key ? rest[0] : undefined);
        const cursor = list.from(key);
        const read: unknown[] = [];
        while (cursor.item !== undefined) read.push(cursor.take());
        expect(read).toEqual(rest);
        expect(cursor.take()).toBeUndefined();
      }),
      { numRuns: 30 },
    );
  });

  test('takes as many changes at once as there are', () => {
    const items = Array.from({ length: 200_000 }, (_, index) => ({ key: String(index).padStart(6, '0') }));
    const even = items.filter((_, index) => index % 2 === 0);
    const list = SortedList.of<{ key: string }>([]).with(new Map(even.map((item) => [item.key, item])));
    expect([...list]).toEqual(even);
    const gone = SortedList.of(items).with(new Map(even.map(({ key }) => [key, undefined])));
    expect(gone).toHaveLength(100_000);
  });
});
