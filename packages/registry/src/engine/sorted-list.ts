import { compareBytes, lowerBound } from '../store/reads/byte-order.ts';

interface Keyed {
  readonly key: string;
}

/** Items that lie together; what lies side by side is more, and nowhere more than twice as many. */
const LEAF = 256;

/**
 * Items ascending by key, immutable. What changes are made of shares all but a few leaves with the list before, so a publish
 * costs the same however much there is.
 */
export class SortedList<T extends Keyed> implements Iterable<T> {
  readonly length: number;
  readonly #leaves: readonly (readonly T[])[];

  private constructor(leaves: readonly (readonly T[])[]) {
    this.#leaves = leaves;
    this.length = leaves.reduce((sum, leaf) => sum + leaf.length, 0);
  }

  /** Of items that ascend already. */
  static of<T extends Keyed>(items: readonly T[]): SortedList<T> {
    const leaves: (readonly T[])[] = [];
    append(leaves, items);
    return new SortedList(leaves);
  }

  /** The item of exactly this key. */
  find(key: string): T | undefined {
    const { item } = this.from(key);
    return item?.key === key ? item : undefined;
  }

  /** At the first item that is not below the key, or at the very first. */
  from(key?: string): Cursor<T> {
    if (key === undefined) return new Cursor(this.#leaves, 0, 0);
    const leaf = this.#leafOf(key);
    return new Cursor(this.#leaves, leaf, lowerBound(this.#leaves[leaf] ?? [], isBelow(key)));
  }

  *[Symbol.iterator](): Iterator<T> {
    for (const leaf of this.#leaves) yield* leaf;
  }

  /** With the items of some keys replaced or added, or left out where the new item is undefined. */
  with(changes: ReadonlyMap<string, T | undefined>): SortedList<T> {
    if (changes.size === 0) return this;
    const ascending = [...changes].toSorted(([one], [other]) => compareBytes(one, other));
    const leaves: (readonly T[])[] = [];
    let next = 0;
    for (const [at, own] of Map.groupBy(ascending, ([key]) => this.#leafOf(key))) {
      for (; next < at; next += 1) append(leaves, this.#leaves[next] ?? []);
      append(leaves, merged(this.#leaves[at] ?? [], own));
      next = at + 1;
    }
    for (; next < this.#leaves.length; next += 1) append(leaves, this.#leaves[next] ?? []);
    return new SortedList(leaves);
  }

  /** The leaf in which a key is, or would be. */
  #leafOf(key: string): number {
    const isNotAfter = (leaf: readonly T[]): boolean => compareBytes(leaf[0]?.key ?? '', key) <= 0;
    return Math.max(0, lowerBound(this.#leaves, isNotAfter) - 1);
  }
}

/**
 * The items of several lists from a key on (all of them where it is undefined), ascending: the next one each
 * time, undefined after the last. What is in several lists comes once.
 */
export function mergedFrom<T extends Keyed>(
  lists: readonly SortedList<T>[],
  from: string | undefined,
): () => T | undefined {
  const runs = lists.map((list) => list.from(from)).filter(({ item }) => item !== undefined);
  const [only] = runs;
  if (only === undefined) return () => undefined;
  return runs.length === 1 ? () => only.take() : mergedByHeap(runs);
}

/** A place in a list, from which it is read on. */
class Cursor<T> {
  readonly #leaves: readonly (readonly T[])[];
  #next: number;
  #leaf: readonly T[];
  #at: number;

  constructor(leaves: readonly (readonly T[])[], leaf: number, at: number) {
    this.#leaves = leaves;
    this.#leaf = leaves[leaf] ?? [];
    this.#next = leaf + 1;
    this.#at = at;
  }

  /** Undefined behind the end. */
  get item(): T | undefined {
    if (this.#at === this.#leaf.length && this.#next < this.#leaves.length) {
      this.#leaf = this.#leaves[this.#next] ?? [];
      this.#next += 1;
      this.#at = 0;
    }
    return this.#leaf[this.#at];
  }

  /** The item, after which the next one has its turn. */
  take(): T | undefined {
    const { item } = this;
    if (item !== undefined) this.#at += 1;
    return item;
  }
}

const isBelow =
  (key: string) =>
  (item: Keyed): boolean =>
    compareBytes(item.key, key) < 0;

/** Puts items behind the others: what is long is parted, and what is short joins the leaf before. */
function append<T>(leaves: (readonly T[])[], items: readonly T[]): void {
  if (items.length === 0) return;
  const last = leaves.at(-1);
  if (last !== undefined && last.length + items.length <= LEAF)
    leaves[leaves.length - 1] = [...last, ...items];
  else if (items.length <= 2 * LEAF) leaves.push(items);
  else for (let at = 0; at < items.length; at += LEAF) leaves.push(items.slice(at, at + LEAF));
}

/** Two ascending lists as one; a change stands for the item of its key. */
function merged<T extends Keyed>(
  items: readonly T[],
  changes: readonly (readonly [key: string, item: T | undefined])[],
): readonly T[] {
  const all: T[] = [];
  let next = 0;
  for (const [key, item] of changes) {
    const to = lowerBound(items, isBelow(key));
    all.push(...items.slice(next, to));
    if (item !== undefined) all.push(item);
    next = items[to]?.key === key ? to + 1 : to;
  }
  all.push(...items.slice(next));
  return all;
}

/** No run is behind its end while it takes part. */
function mergedByHeap<T extends Keyed>(runs: readonly Cursor<T>[]): () => T | undefined {
  const heap = runs.toSorted(byKey);
  let last: string | undefined;
  return () => {
    for (let run = heap[0]; run !== undefined; run = heap[0]) {
      const item = run.take();
      if (run.item === undefined) replaceFirst(heap);
      sinkFirst(heap);
      if (item !== undefined && item.key !== last) {
        last = item.key;
        return item;
      }
    }
    return undefined;
  };
}

/** The first run has ended. */
function replaceFirst<T>(heap: Cursor<T>[]): void {
  const moved = heap.pop();
  if (moved !== undefined && heap.length > 0) heap[0] = moved;
}

function sinkFirst<T extends Keyed>(heap: Cursor<T>[]): void {
  for (let at = 0; ;) {
    const least = leastOf(heap, at);
    const [upper, lower] = [heap[at], heap[least]];
    if (least === at || upper === undefined || lower === undefined) return;
    heap[at] = lower;
    heap[least] = upper;
    at = least;
  }
}

/** Of a run and the two below it, the one whose key comes first. */
function leastOf<T extends Keyed>(heap: readonly Cursor<T>[], at: number): number {
  let least = at;
  for (const below of [2 * at + 1, 2 * at + 2]) {
    const [one, other] = [heap[least], heap[below]];
    if (one !== undefined && other !== undefined && byKey(other, one) < 0) least = below;
  }
  return least;
}

function byKey<T extends Keyed>(one: Cursor<T>, other: Cursor<T>): number {
  return compareBytes(one.item?.key ?? '', other.item?.key ?? '');
}
