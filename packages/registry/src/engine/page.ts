import { hash } from 'node:crypto';
import type { EntryKind } from '../store/rows.ts';
import type { ServedEntry, ServedVersion } from './block.ts';
import { compareBytes, lowerBound } from '../store/reads/byte-order.ts';
import { encodeCursor } from './cursor.ts';
import type { PageKey } from './kept-pages.ts';
import { KINDS } from './kinds.ts';
import {
  MAX_PAGE_BYTES,
  type PageItems,
  type PageQuery,
  positionOf,
  type Reader,
  walkPage,
} from './page-walk.ts';
import { findEntry } from './snapshot.ts';
import { Turns } from './turns.ts';

/** JSON in pieces. Equal digests promise equal bytes. */
export interface Page {
  readonly pieces: readonly Buffer[];
  readonly digest: string;
}

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
export function entryOf({ kind, view, visible }: Reader, key: string): ServedEntry | undefined {
  return findEntry(view.groups[kind], key, visible);
}

/** Versions of one entry in the list shape; an empty list for an entry the caller does not see. */
export function versionsPage(
  kind: EntryKind,
  entry: ServedEntry | undefined,
  { limit, after }: Pick<PageQuery, 'limit' | 'after'>,
): Page {
  if (entry === undefined) return joinItems(kind, { items: [] });
  const from = after === undefined ? 0 : lowerBound(entry.versions, isNotAfter(after.version));
  const to = from + fitting(entry.versions.slice(from, from + limit));
  const items = entry.versions.slice(from, to).map((version) => ({ entry, version }));
  const last = items.at(-1);
  return joinItems(kind, {
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

/** The item of an exact version or of `latest`. */
export function versionPage(entry: ServedEntry, version: string): Page | undefined {
  const found =
    version === 'latest'
      ? entry.versions.find((candidate) => candidate.isLatest)
      : entry.versions.find((candidate) => candidate.version === version);
  if (found === undefined) return undefined;
  return { pieces: [entry.bytes.subarray(found.start, found.end)], digest: found.digest };
}

/** With one text for equal pages, as long as nothing changes that the caller sees of the registry. */
export function pageKey(reader: Reader, query: PageQuery): PageKey {
  const { kind, view, visible, visibility, pages } = reader;
  const state = pages.stateOf({ registry: view.name, visibility, visible });
  return { state, text: JSON.stringify([state.id, kind, query]) };
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
  return { pieces, digest: hash('sha256', digests + tail, 'base64url') };
}
