import { placeOf, type Place } from './judge.ts';
import { findElements, findMembers } from './scan.ts';

/**
 * Where the value stands that `path` leads to; of a path that leads nowhere, the last value on it. Undefined when already
 * its first name is not in the text, which is JSON or empty.
 */
export function memberPlace(text: string, path: readonly (string | number)[]): Place | undefined {
  let start: number | undefined;
  let end = text.length;
  for (const name of path) {
    const base = start ?? 0;
    const inside = text.slice(base, end);
    const found =
      typeof name === 'number'
        ? findElements(inside, name + 1)[name]
        : findMembers(inside, 0, new Set([name]), 'last')?.get(name);
    if (found === undefined) break;
    start = base + found.start;
    end = base + found.end;
  }
  return start === undefined ? undefined : placeOf(text, start);
}
