import { hash } from 'node:crypto';
import type { BundleStatus } from '@skep/core/catalog/bundle.ts';
import { newestVersion } from '@skep/core/catalog/version-order.ts';
import {
  type EntryIdentity,
  type PerKind,
  perKind,
  type StoredEntry,
  type StoredVersion,
} from '../store/rows.ts';
import { compareBytes } from '../store/reads/byte-order.ts';
import type { ClaimSet } from '../access/claim-set.ts';
import type { Instant } from './instant.ts';
import { entryKey, shownKey } from './entry-key.ts';
import { isDeleted, KINDS } from './kinds.ts';
import { SortedList } from './sorted-list.ts';

/** A version ready to be served: `entry.bytes` from `start` to `end` is its item. */
export interface ServedVersion {
  readonly version: string;
  readonly updatedAt: Instant;
  readonly haystack: string;
  readonly isLatest: boolean;
  readonly status?: BundleStatus;
  readonly start: number;
  readonly end: number;
  /** SHA-256 of the item, of which tags of pages are made. */
  readonly digest: string;
}

export interface ServedEntry {
  /** See entryKey. */
  readonly key: string;
  readonly claims: ClaimSet;
  readonly bytes: Buffer;
  /** Ascending by version string. */
  readonly versions: readonly ServedVersion[];
}

/** Everything one source serves, immutable. Entries ascend by key; their bytes lie in the order of the store, a comma after each. */
export interface SourceBlock {
  readonly source: string;
  readonly entries: PerKind<SortedList<ServedEntry>>;
}

/** Serialises a source's entries once, so that every read sends bytes that exist. Identities must be unique. */
export function buildBlock(source: string, entries: readonly StoredEntry[]): SourceBlock {
  const serialiser = new EntrySerialiser();
  for (const entry of entries) serialiser.add(entry);
  return serialiser.block(source);
}

/** Makes what callers get of entries, one after the other: none is needed any more when the next is added. */
export class EntrySerialiser {
  readonly #served: PerKind<ServedEntry[]> = perKind(() => []);
  readonly #chunkBytes: number;
  /**
   * Bodies one after the other with a comma behind each, in chunks: a single buffer would have to be measured first or
   * copied at the end, and both need all of the text in memory a second time.
   */
  #chunk = Buffer.alloc(0);
  #used = 0;

  /** Bodies lie together in chunks of at least so many bytes, in the order in which their entries are added. */
  constructor(chunkBytes = CHUNK_BYTES) {
    this.#chunkBytes = chunkBytes;
  }

  /** Leaves out what its registry says is deleted; an entry of which nothing is left is not served. */
  add(stored: StoredEntry): void {
    const steps = this.steps(stored);
    while (steps.next().done !== true);
  }

  /** The same version by version, for who has to stop in between: a source has as many in an entry as it likes. */
  *steps(stored: StoredEntry): Generator<undefined, void> {
    const { kind, claims } = stored;
    const key = entryKey(stored);
    const given = stored.versions.filter(({ official }) => !isDeleted(official));
    if (given.length === 0) return;
    // `latest` is decided per source, before shadowing picks the source (docs/behaviour/registry.md#shadowing).
    const newest = newestVersion(given.map(({ version }) => version));
    const drafts: (Omit<ServedVersion, 'start' | 'end'> & { readonly text: string })[] = [];
    for (const version of given.toSorted((a, b) => compareBytes(a.version, b.version))) {
      const isLatest = version.version === newest;
      const body = KINDS[kind].body(version, isLatest);
      drafts.push({
        version: version.version,
        ...body,
        isLatest,
        haystack: haystack(shownKey(key), version),
        digest: hash('sha256', body.text, 'base64url'),
      });
      yield;
    }
    this.#reserve(drafts.reduce((sum, { text }) => sum + Buffer.byteLength(text) + 1, 0));
    const versions = drafts.map(({ text, ...draft }) => ({ ...draft, ...this.#append(text) }));
    this.#served[kind].push({ key, claims, bytes: this.#chunk, versions });
  }

  /** What was added, ascending by key. */
  block(source: string): SourceBlock {
    const sorted = (served: readonly ServedEntry[]): SortedList<ServedEntry> =>
      SortedList.of(served.toSorted((a, b) => compareBytes(a.key, b.key)));
    return { source, entries: perKind((kind) => sorted(this.#served[kind])) };
  }

  /** The bodies of one entry lie in one chunk. */
  #reserve(bytes: number): void {
    if (this.#used + bytes <= this.#chunk.length) return;
    this.#chunk = Buffer.allocUnsafeSlow(Math.max(bytes, this.#chunkBytes));
    this.#used = 0;
  }

  #append(body: string): Pick<ServedVersion, 'start' | 'end'> {
    const start = this.#used;
    const end = start + this.#chunk.write(body, start);
    this.#chunk[end] = COMMA;
    this.#used = end + 1;
    return { start, end };
  }
}

const COMMA = 0x2c;
const CHUNK_BYTES = 1024 * 1024;

/**
 * The block with some entries as they are now, which of `changed` may be fewer: the others are gone. What did not change
 * stays where it lies, so that a publish costs little however much the source holds.
 */
export function patchBlock(
  block: SourceBlock,
  changed: readonly EntryIdentity[],
  now: readonly StoredEntry[],
): SourceBlock {
  // Each in bytes of its own: a chunk would live as long as the longest-lived of the entries that share it.
  const serialiser = new EntrySerialiser(0);
  for (const entry of now) serialiser.add(entry);
  const fresh = serialiser.block(block.source).entries;
  const keys = changedKeys(changed);
  const entries = perKind((kind) => {
    const changes = new Map<string, ServedEntry | undefined>();
    for (const key of keys[kind]) changes.set(key, undefined);
    for (const entry of fresh[kind]) changes.set(entry.key, entry);
    return block.entries[kind].with(changes);
  });
  return { source: block.source, entries };
}

/** Keys under which something is different now, or gone. */
export type ChangedKeys = PerKind<ReadonlySet<string>>;

export function changedKeys(changed: readonly EntryIdentity[]): ChangedKeys {
  const identities = Map.groupBy(changed, ({ kind }) => kind);
  return perKind((kind) => new Set(identities.get(kind)?.map(entryKey)));
}

// No field can contain it in JSON that a person wrote, so a match never spans two fields by accident.
const FIELD_END = '\u0000';

/** Characters that a search may have: comparing costs, in the worst case, their number times that of the text. */
export const MAX_SEARCH_CHARACTERS = 200;
/** Characters of a title and of a description that are searched. */
const SEARCHED_CHARACTERS = 4096;

/** The lower-cased text that one version is searched in: name, title and description. */
function haystack(name: string, { title, description }: StoredVersion): string {
  const searched = [title, description].map((text) => text?.slice(0, SEARCHED_CHARACTERS));
  return [name, ...searched].join(FIELD_END).toLowerCase();
}

/** A case-insensitive substring test; every character is literal, also `%`, `_` and `*`. */
export function searchTest(search: string): (haystack: string) => boolean {
  const needle = search.toLowerCase();
  if (needle.includes(FIELD_END)) return () => false;
  return (text) => text.includes(needle);
}
