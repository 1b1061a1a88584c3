import { compareBytes } from '../store/reads/byte-order.ts';
import type { ClaimClass, VisibleClasses } from '../access/claim-set.ts';
import type { ServedEntry } from './block.ts';
import type { Cursor, SortedList } from './sorted-list.ts';

/** One source's entry under a key. */
export interface Candidate {
  readonly claimClass: ClaimClass;
  readonly entry: ServedEntry;
}

/** Everything a registry holds under one key, by source priority. Which candidate a caller sees is decided per read. */
export interface KeyGroup {
  readonly key: string;
  readonly candidates: readonly [Candidate, ...Candidate[]];
}

/** The names of one kind in a registry: all of them, and by the claim class of any copy. Every list ascends by key. */
export interface GroupIndex {
  readonly all: SortedList<KeyGroup>;
  readonly byClass: ReadonlyMap<ClaimClass, SortedList<KeyGroup>>;
}

/** Gives the next name each time, undefined after the last. */
export type NextGroup = () => KeyGroup | undefined;

/**
 * The names that have a copy of a visible class, ascending from `from` on (all of them where it is undefined). Names of
 * which the caller sees no copy are not even passed over, so the time that a list takes tells nothing about them.
 */
export function visibleGroups(
  index: GroupIndex,
  classes: VisibleClasses,
  from: string | undefined,
): NextGroup {
  const lists = classes === 'all' ? [index.all] : classes.flatMap((each) => listOf(index, each));
  const runs = lists.map((list) => list.from(from)).filter(({ item }) => item !== undefined);
  const [only] = runs;
  if (only === undefined) return () => undefined;
  return runs.length === 1 ? () => only.take() : merged(runs);
}

function listOf({ byClass }: GroupIndex, claimClass: ClaimClass): SortedList<KeyGroup>[] {
  const list = byClass.get(claimClass);
  return list === undefined ? [] : [list];
}

/** Where the reading of a list is; never behind its end while it takes part. */
type Run = Cursor<KeyGroup>;

/** Merges ascending lists by a heap; a name with copies of several visible classes comes once. */
function merged(runs: readonly Run[]): NextGroup {
  const heap = runs.toSorted(byKey);
  let last: string | undefined;
  return () => {
    for (let run = heap[0]; run !== undefined; run = heap[0]) {
      const group = run.take();
      if (run.item === undefined) replaceFirst(heap);
      sinkFirst(heap);
      if (group !== undefined && group.key !== last) {
        last = group.key;
        return group;
      }
    }
    return undefined;
  };
}

/** The first run has ended. */
function replaceFirst(heap: Run[]): void {
  const moved = heap.pop();
  if (moved !== undefined && heap.length > 0) heap[0] = moved;
}

function sinkFirst(heap: Run[]): void {
  for (let at = 0; ;) {
    const least = leastOf(heap, at);
    const [upper, lower] = [heap[at], heap[least]];
    if (least === at || upper === undefined || lower === undefined) return;
    heap[at] = lower;
    heap[least] = upper;
    at = least;
  }
}

/** Of a run and the two below it, the one whose name comes first. */
function leastOf(heap: readonly Run[], at: number): number {
  let least = at;
  for (const below of [2 * at + 1, 2 * at + 2]) {
    const [one, other] = [heap[least], heap[below]];
    if (one !== undefined && other !== undefined && byKey(other, one) < 0) least = below;
  }
  return least;
}

function byKey(one: Run, other: Run): number {
  return compareBytes(one.item?.key ?? '', other.item?.key ?? '');
}
