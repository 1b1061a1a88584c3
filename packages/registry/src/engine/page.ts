import type { BundleStatus } from '@skep/core/catalog/bundle.ts';
import type { EntryKind } from '../store/rows.ts';
import type { ServedEntry, ServedVersion } from './block.ts';
import { compareBytes, lowerBound } from './byte-order.ts';
import { encodeCursor, type Position } from './cursor.ts';
import type { Instant } from './instant.ts';
import type { KeptPages } from './kept-pages.ts';
import { keyOfShown, KINDS, shownKey } from './kinds.ts';
import { searchTest } from './search.ts';
import { findEntry, type RegistryView, type Visible, winner } from './snapshot.ts';

export interface PageQuery {
  /** Exclusive start. */
  readonly after?: Position;
  /** At most this many items, at least 1. */
  readonly limit: number;
  /** Substring of name, title or description, in any case. */
  readonly search?: string;
  /** Only versions updated strictly later. */
  readonly updatedSince?: Instant;
  /** `latest`, or one exact version string. */
  readonly version?: string;
  /** Only skills or plugins of this status. */
  readonly status?: BundleStatus;
}

/** The caller's view of one kind of entries in one registry. */
export interface Reader {
  readonly kind: EntryKind;
  readonly view: RegistryView;
  readonly visible: Visible;
  /** Equal for callers to whom the same claim classes are visible. */
  readonly visibility: string;
  readonly pages: KeptPages;
}

interface Item {
  readonly entry: ServedEntry;
  readonly version: ServedVersion;
}

function positionOf({ entry, version }: Item): Position {
  return { name: shownKey(entry.key), version: version.version };
}

/**
 * One page of the list shape as pieces of JSON: one item per version, ascending by key, then by version string.
 * Shadowing and visibility come first, so filters never bring a shadowed copy back and never shorten a page.
 */
export function listPage(reader: Reader, query: PageQuery): Buffer[] {
  const items: Item[] = [];
  for (const item of matches(reader, query)) {
    items.push(item);
    if (items.length > query.limit) break;
  }
  const page = items.slice(0, query.limit);
  const last = items.length > query.limit ? page.at(-1) : undefined;
  return joinItems(reader.kind, page, last === undefined ? undefined : positionOf(last));
}

/** The entry of this key that the caller sees. */
export function entryOf({ kind, view, visible }: Reader, key: string): ServedEntry | undefined {
  return findEntry(view.groups[kind], key, visible);
}

/** Versions of one entry in the list shape; an empty list for an entry the caller does not see. */
export function versionsPage(
  kind: EntryKind,
  entry: ServedEntry | undefined,
  { limit, after }: Pick<PageQuery, 'limit' | 'after'>,
): Buffer[] {
  if (entry === undefined) return joinItems(kind, []);
  const from = after === undefined ? 0 : lowerBound(entry.versions, isNotAfter(after.version));
  const versions = entry.versions.slice(from, from + limit);
  const last = versions.at(-1);
  const hasMore = from + limit < entry.versions.length;
  return joinItems(
    kind,
    versions.map((version) => ({ entry, version })),
    last === undefined || !hasMore ? undefined : positionOf({ entry, version: last }),
  );
}

const isNotAfter =
  (version: string) =>
  (candidate: ServedVersion): boolean =>
    compareBytes(candidate.version, version) <= 0;

/** The item of an exact version or of `latest`. */
export function versionBytes(entry: ServedEntry, version: string): Buffer | undefined {
  const found =
    version === 'latest'
      ? entry.versions.find((candidate) => candidate.isLatest)
      : entry.versions.find((candidate) => candidate.version === version);
  return found === undefined ? undefined : entry.bytes.subarray(found.start, found.end);
}

/** One text for equal pages of one snapshot. Holds what is hidden from the caller too, so no caller may see it. */
export function pageKey(reader: Reader, query: PageQuery): string {
  return JSON.stringify([reader.kind, reader.view.name, reader.visibility, query]);
}

function* matches(reader: Reader, query: PageQuery): Generator<Item> {
  const groups = reader.view.groups[reader.kind];
  const { after } = query;
  const afterKey = after === undefined ? undefined : keyOfShown(reader.kind, after.name);
  const wanted = versionTest(query);
  const first =
    afterKey === undefined ? 0 : lowerBound(groups, (group) => compareBytes(group.key, afterKey) < 0);
  for (let at = first; at < groups.length; at += 1) {
    const group = groups[at];
    const entry = group === undefined ? undefined : winner(group, reader.visible);
    if (entry === undefined) continue;
    for (const version of entry.versions) {
      const passed =
        after !== undefined && entry.key === afterKey && compareBytes(version.version, after.version) <= 0;
      if (!passed && wanted(version)) yield { entry, version };
    }
  }
}

function versionTest(query: PageQuery): (version: ServedVersion) => boolean {
  const { version: wanted, updatedSince, status } = query;
  const found = query.search === undefined ? () => true : searchTest(query.search);
  return (version) =>
    (wanted === undefined || (wanted === 'latest' ? version.isLatest : version.version === wanted)) &&
    (updatedSince === undefined || version.updatedAt > updatedSince) &&
    (status === undefined || version.status === status) &&
    found(version.haystack);
}

const HEADS: Readonly<Record<EntryKind, Buffer>> = {
  server: headOf('server'),
  skill: headOf('skill'),
  plugin: headOf('plugin'),
};

function headOf(kind: EntryKind): Buffer {
  return Buffer.from(`{"${KINDS[kind].list}":[`);
}

const COMMA = Buffer.from(',');

/**
 * The items' own bytes between the pieces of the envelope. Neighbours within one source are one piece, so an unfiltered
 * page has three however many items it holds, and nothing of it is copied.
 */
function joinItems(kind: EntryKind, items: readonly Item[], next?: Position): Buffer[] {
  const runs: { bytes: Buffer; start: number; end: number }[] = [];
  for (const { entry, version } of items) {
    const run = runs.at(-1);
    // One byte apart: the comma that the block keeps between its bodies.
    if (run !== undefined && run.bytes === entry.bytes && version.start === run.end + 1)
      run.end = version.end;
    else runs.push({ bytes: entry.bytes, start: version.start, end: version.end });
  }
  const metadata = { ...(next === undefined ? {} : { nextCursor: encodeCursor(next) }), count: items.length };
  const tail = Buffer.from(`],"metadata":${JSON.stringify(metadata)}}`);
  const pieces = [
    HEADS[kind],
    ...runs.flatMap(({ bytes, start, end }) => [COMMA, bytes.subarray(start, end)]).slice(1),
    tail,
  ];
  return pieces;
}
