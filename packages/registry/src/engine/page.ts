import { hash } from 'node:crypto';
import type { BundleStatus } from '@skep/core/catalog/bundle.ts';
import type { Visibility } from '../access/visibility.ts';
import { perKind, type EntryKind } from '../store/rows.ts';
import { searchTest, type ServedEntry, type ServedVersion } from './block.ts';
import { compareBytes, lowerBound } from '../store/reads/byte-order.ts';
import { encodeCursor, keyOfShown, type Position, shownKey } from './entry-key.ts';
import type { Instant } from './instant.ts';
import type { KeptPages, Page, PageKey } from './kept-pages.ts';
import { KINDS } from './kinds.ts';
import { visibleGroups, winner, type RegistryView } from './snapshot.ts';
import { Turns } from './turns.ts';

/**
 * One page of the list shape: one item per version, ascending by key, then by version string. Shadowing and visibility
 * come first, so filters never bring a shadowed copy back and never shorten a page. A page ends early where its bytes or
 * the comparisons for it would be too many; its cursor then leads on. Other requests are answered while a search takes
 * longer than a moment, which is what the promise is for; it fails when the page is not wanted any more.
 */
export function listPage(reader: Reader, query: PageQuery, isWanted?: () => boolean): Page | Promise<Page> {
  const walk = walkPage(reader, query);
  const found = walk();
  const { kind } = reader;
  return found === undefined
    ? turns.finish(walk, isWanted).then((items) => joinItems(kind, items))
    : joinItems(kind, found);
}

/** One line for the process, because it has one event loop. */
const turns = new Turns();

/** The entry of this key that the caller sees. */
export function entryOf({ kind, view, visibility }: Reader, key: string): ServedEntry | undefined {
  const group = view.groups[kind].all.find(key);
  return group === undefined ? undefined : winner(group, visibility.visible);
}

/** Versions of one entry in the list shape; an empty list for an entry the caller does not see. */
export function versionsPage(
  reader: Reader,
  key: string,
  { limit, after }: Pick<PageQuery, 'limit' | 'after'>,
): Page {
  const entry = entryOf(reader, key);
  if (entry === undefined) return joinItems(reader.kind, { items: [] });
  const from = after === undefined ? 0 : lowerBound(entry.versions, isNotAfter(after.version));
  const to = from + fitting(entry.versions.slice(from, from + limit));
  const items = entry.versions.slice(from, to).map((version) => ({ entry, version }));
  const last = items.at(-1);
  return joinItems(reader.kind, {
    items,
    ...(last === undefined || to === entry.versions.length ? {} : { next: positionOf(last) }),
  });
}

/** How many versions a page can take; at least one. */
function fitting(versions: readonly ServedVersion[]): number {
  let bytes = 0;
  const first = versions.findIndex(({ start, end }) => (bytes += end - start) > MAX_PAGE_BYTES);
  return first === -1 ? versions.length : Math.max(first, 1);
}

const isNotAfter =
  (version: string) =>
  (candidate: ServedVersion): boolean =>
    compareBytes(candidate.version, version) <= 0;

/** The item of an exact version or of `latest`; undefined where the caller sees none. */
export function versionPage(reader: Reader, key: string, version: string): Page | undefined {
  const entry = entryOf(reader, key);
  const found = entry?.versions.find((one) =>
    version === 'latest' ? one.isLatest : one.version === version,
  );
  if (entry === undefined || found === undefined) return undefined;
  return { pieces: [entry.bytes.subarray(found.start, found.end)], etag: `"${found.digest}"` };
}

/** With one text for equal pages, as long as nothing changes that the caller sees of the registry. */
export function pageKey(reader: Reader, query: PageQuery): PageKey {
  const { kind, view, visibility, pages } = reader;
  const state = pages.stateOf(view.name, visibility);
  return { state, text: JSON.stringify([state.id, kind, query]) };
}

const HEADS = perKind((kind) => Buffer.from(`{"${KINDS[kind].list}":[`));
const COMMA = Buffer.from(',');
/** Writing a piece costs more than copying a few kilobytes, and pages of many sources have hundreds. */
const MAX_PIECES = 16;

/**
 * The items' own bytes between the pieces of the envelope. Neighbours within one source are one piece, so an unfiltered
 * page has three however many items it holds, and nothing of it is copied or hashed again.
 */
function joinItems(kind: EntryKind, { items, next }: PageItems): Page {
  const runs: { bytes: Buffer; start: number; end: number }[] = [];
  let digests: string = kind;
  for (const { entry, version } of items) {
    digests += version.digest;
    const run = runs.at(-1);
    // One byte apart: the comma that the block keeps between its bodies.
    if (run !== undefined && run.bytes === entry.bytes && version.start === run.end + 1)
      run.end = version.end;
    else runs.push({ bytes: entry.bytes, start: version.start, end: version.end });
  }
  const metadata = { ...(next === undefined ? {} : { nextCursor: encodeCursor(next) }), count: items.length };
  const tail = `],"metadata":${JSON.stringify(metadata)}}`;
  const pieces = [
    HEADS[kind],
    ...runs.flatMap(({ bytes, start, end }) => [COMMA, bytes.subarray(start, end)]).slice(1),
    Buffer.from(tail),
  ];
  const etag = `"${hash('sha256', digests + tail, 'base64url')}"`;
  return { etag, pieces: pieces.length <= MAX_PIECES ? pieces : [Buffer.concat(pieces)] };
}

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
  readonly visibility: Visibility;
  readonly pages: KeptPages;
}

interface Item {
  readonly entry: ServedEntry;
  readonly version: ServedVersion;
}

/** What a page holds, and after which position the next one starts; absent on the last page. */
interface PageItems {
  readonly items: readonly Item[];
  readonly next?: Position;
}

function positionOf({ entry, version }: Item): Position {
  return { name: shownKey(entry.key), version: version.version };
}

/** Of all items of a page together; one that is larger by itself is a page. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
/** Comparisons of characters, at worst, before others get their turn: some milliseconds. */
const TURN = 20_000_000;
/** The same before a page ends early: about a second. A search for a word reaches it in some million versions. */
const MAX_COMPARISONS = 4_000_000_000;

/** Bounds of one walk; tests set lower ones. */
interface WalkBounds {
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
  const { kind, view, visibility } = reader;
  const { visible, classes } = visibility;
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
