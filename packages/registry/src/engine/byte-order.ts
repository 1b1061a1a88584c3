// Moves the surrogate range above the other 16-bit units, which is where UTF-8 sorts what they encode.
const rank = (unit: number): number => (unit < 0xd800 ? unit : unit > 0xdfff ? unit - 0x800 : unit + 0x2000);

/**
 * Orders two strings as their UTF-8 bytes (PostgreSQL's collation "C"), so that pages follow the same order on every
 * replica and store whatever the locale. Negative, zero or positive, as for Array.prototype.sort.
 */
export function compareBytes(left: string, right: string): number {
  const shared = Math.min(left.length, right.length);
  for (let at = 0; at < shared; at += 1) {
    const difference = rank(left.charCodeAt(at)) - rank(right.charCodeAt(at));
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

/** Index of the first item of an ascending list that is not below the key; `items.length` when all are. */
export function lowerBound<T>(items: readonly T[], below: (item: T) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = items[middle];
    if (item !== undefined && below(item)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * An ascending list with the items of some keys replaced or added, or left out where the new item is undefined. The rest
 * is copied without a look at it, so the cost is that of the changes however long the list is.
 */
export function withChanges<T extends { readonly key: string }>(
  items: readonly T[],
  changes: ReadonlyMap<string, T | undefined>,
): readonly T[] {
  const pieces: (readonly T[])[] = [];
  let from = 0;
  for (const key of [...changes.keys()].toSorted(compareBytes)) {
    const to = lowerBound(items, (item) => compareBytes(item.key, key) < 0);
    const change = changes.get(key);
    pieces.push(items.slice(from, to), change === undefined ? [] : [change]);
    from = items[to]?.key === key ? to + 1 : to;
  }
  return pieces.length === 0 ? items : joined([...pieces, items.slice(from)]);
}

/** An engine takes only so many arguments in one call. */
const MOST_ARGUMENTS = 10_000;

/** `flat`, which asks every item whether it is a list, takes ten times as long. */
function joined<T>(pieces: readonly (readonly T[])[]): readonly T[] {
  if (pieces.length <= MOST_ARGUMENTS) return new Array<T>().concat(...pieces);
  const groups: (readonly T[])[] = [];
  for (let at = 0; at < pieces.length; at += MOST_ARGUMENTS) {
    groups.push(joined(pieces.slice(at, at + MOST_ARGUMENTS)));
  }
  return joined(groups);
}
