import type { BundleStatus } from '@skep/core/catalog/bundle.ts';
import type { EntryKind } from '../store/rows.ts';
import type { ServedEntry, ServedVersion } from './block.ts';
import { compareBytes } from '../store/reads/byte-order.ts';
import type { Position } from './cursor.ts';
import type { Instant } from './instant.ts';
import { keyOfShown, shownKey } from './kinds.ts';
import type { KeptPages } from './kept-pages.ts';
import { searchTest } from './search.ts';
import { type RegistryView, type Visible, winner } from './snapshot.ts';
import { visibleGroups } from './visible-groups.ts';
import { type VisibleClasses } from '../access/claim-set.ts';

export interface PageQuery {
  /** Exclusive start. */
  readonly after?: Position | undefined;
  /** At most this many items, at least 1. */
  readonly limit: number;
  /** Substring of name, title or description, in any case. */
  readonly search?: string | undefined;
  /** Only versions updated strictly later. */
  readonly updatedSince?: Instant | undefined;
  /** `latest`, or one exact version string. */
  readonly version?: string | undefined;
  /** Only skills or plugins of this status. */
  readonly status?: BundleStatus | undefined;
}

/** The caller's view of one kind of entries in one registry. */
export interface Reader {
  readonly kind: EntryKind;
  readonly view: RegistryView;
  readonly visible: Visible;
  readonly classes: VisibleClasses;
  /** Equal for callers to whom the same claim classes are visible. */
  readonly visibility: string;
  readonly pages: KeptPages;
}

export interface Item {
  readonly entry: ServedEntry;
  readonly version: ServedVersion;
}

/** What a page holds, and after which position the next one starts; absent on the last page. */
export interface PageItems {
  readonly items: readonly Item[];
  readonly next?: Position;
}

export function positionOf({ entry, version }: Item): Position {
  return { name: shownKey(entry.key), version: version.version };
}

/** Of all items of a page together; one that is larger by itself is a page. */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024;
/** Comparisons of characters, at worst, before others get their turn: some milliseconds. */
const TURN = 20_000_000;
/** The same before a page ends early: about a second. A search for a word reaches it in some million versions. */
const MAX_COMPARISONS = 4_000_000_000;

/** Bounds of one walk; tests set lower ones. */
export interface WalkBounds {
  readonly turn: number;
  readonly comparisons: number;
}

/**
 * Walks over what the caller sees until the page is full. Each call does one turn; the page comes with the last one, which
 * usually is the first, and undefined before.
 */
export function walkPage(
  reader: Reader,
  query: PageQuery,
  { turn, comparisons }: WalkBounds = { turn: TURN, comparisons: MAX_COMPARISONS },
): () => PageItems | undefined {
  const { limit, search } = query;
  const searched = search?.length ?? 0;
  const next = versionsSeen(reader, query.after);
  const wanted = versionTest(query);
  const items: Item[] = [];
  let bytes = 0;
  let compared = 0;
  return () => {
    for (const pause = compared + turn; ;) {
      const item = next();
      if (item === undefined) return { items };
      if (wanted(item.version)) {
        bytes += item.version.end - item.version.start;
        const last = items.at(-1);
        if (last !== undefined && (items.length === limit || bytes > MAX_PAGE_BYTES)) {
          return { items, next: positionOf(last) };
        }
        items.push(item);
      }
      compared += 1 + searched * item.version.haystack.length;
      if (compared >= comparisons) return { items, next: positionOf(item) };
      if (compared >= pause) return undefined;
    }
  };
}

/** Gives the next version that the caller sees each time, undefined after the last. */
function versionsSeen(reader: Reader, after: Position | undefined): () => Item | undefined {
  const { kind, view, visible, classes } = reader;
  const afterKey = after === undefined ? undefined : keyOfShown(kind, after.name);
  const nextGroup = visibleGroups(view.groups[kind], classes, afterKey);
  let entry: ServedEntry | undefined;
  let at = 0;
  return () => {
    for (;;) {
      const version = entry?.versions[at++];
      if (entry !== undefined && version !== undefined) {
        const isPassed =
          after !== undefined && entry.key === afterKey && compareBytes(version.version, after.version) <= 0;
        if (!isPassed) return { entry, version };
        continue;
      }
      const group = nextGroup();
      if (group === undefined) return undefined;
      entry = winner(group, visible);
      at = 0;
    }
  };
}

function versionTest({ version: wanted, updatedSince, status, search }: PageQuery) {
  const contains = search === undefined ? () => true : searchTest(search);
  return (version: ServedVersion): boolean =>
    (wanted === undefined || (wanted === 'latest' ? version.isLatest : version.version === wanted)) &&
    (updatedSince === undefined || version.updatedAt > updatedSince) &&
    (status === undefined || version.status === status) &&
    contains(version.haystack);
}
