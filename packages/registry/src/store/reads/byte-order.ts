// Moves the surrogate range above the other 16-bit units, which is where UTF-8 sorts what they encode.
const rank = (unit: number): number => (unit < 0xd800 ? unit : unit > 0xdfff ? unit - 0x800 : unit + 0x2000);

/**
 * Orders two strings as their UTF-8 bytes (PostgreSQL's collation "C"), so that pages follow the same order on every
 * replica and store whatever the locale. Negative, zero or positive, as for Array.prototype.sort.
 */
export function compareBytes(left: string, right: string): number {
  const shared = Math.min(left.length, right.length);
  for (let at = 0; at < shared; at += 1) {
    const [one, other] = [left.charCodeAt(at), right.charCodeAt(at)];
    if (one !== other) return rank(one) - rank(other);
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
