import { hash } from 'node:crypto';
import type { BundleStatus } from '@skep/core/catalog/bundle.ts';
import { newestVersion } from '@skep/core/catalog/version-order.ts';
import type { EntryKind, StoredEntry } from '../store/rows.ts';
import { compareBytes } from '../store/reads/byte-order.ts';
import type { ClaimSet } from '../access/claim-set.ts';
import type { Instant } from './instant.ts';
import { entryKey, KINDS, shownKey } from './kinds.ts';
import { haystack } from './search.ts';
import { isDeleted } from './server-meta.ts';
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
  readonly entries: Readonly<Record<EntryKind, SortedList<ServedEntry>>>;
}

/** Serialises a source's entries once, so that every read sends bytes that exist. Identities must be unique. */
export function buildBlock(source: string, entries: readonly StoredEntry[]): SourceBlock {
  const serialiser = new EntrySerialiser();
  for (const entry of entries) serialiser.add(entry);
  return serialiser.block(source);
}

/** Makes what callers get of entries, one after the other: none is needed any more when the next is added. */
export class EntrySerialiser {
  readonly #bytes: BodyBytes;
  readonly #served: Readonly<Record<EntryKind, ServedEntry[]>> = { server: [], skill: [], plugin: [] };

  /** Bodies lie together in chunks of at least so many bytes, in the order in which their entries are added. */
  constructor(chunkBytes = CHUNK_BYTES) {
    this.#bytes = new BodyBytes(chunkBytes);
  }

  /** Leaves out what its registry says is deleted; an entry of which nothing is left is not served. */
  add(stored: StoredEntry): void {
    const steps = this.steps(stored);
    while (steps.next().done !== true);
  }

  /** The same version by version, for who has to stop in between: a source has as many in an entry as it likes. */
  *steps(stored: StoredEntry): Generator<undefined, void> {
    const key = entryKey(stored);
    const { kind, claims } = stored;
    const entry = { ...stored, versions: stored.versions.filter(({ official }) => !isDeleted(official)) };
    if (entry.versions.length === 0) return;
    this.#served[kind].push({ key, claims, ...(yield* serialised(key, entry, this.#bytes)) });
  }

  /** What was added, ascending by key. */
  entries(): SourceBlock['entries'] {
    const sorted = (kind: EntryKind): SortedList<ServedEntry> =>
      SortedList.of(this.#served[kind].toSorted((a, b) => compareBytes(a.key, b.key)));
    return { server: sorted('server'), skill: sorted('skill'), plugin: sorted('plugin') };
  }

  block(source: string): SourceBlock {
    return { source, entries: this.entries() };
  }
}

function* serialised(
  key: string,
  entry: StoredEntry,
  bytes: BodyBytes,
): Generator<undefined, Pick<ServedEntry, 'bytes' | 'versions'>> {
  // `latest` is decided per source, before shadowing picks the source (docs/behaviour/registry.md#shadowing).
  const newest = newestVersion(entry.versions.map(({ version }) => version));
  const bodies: string[] = [];
  const drafts: Omit<ServedVersion, keyof Place>[] = [];
  for (const version of entry.versions.toSorted((a, b) => compareBytes(a.version, b.version))) {
    const isLatest = version.version === newest;
    const { text, ...body } = KINDS[entry.kind].body(version, isLatest);
    bodies.push(text);
    drafts.push({
      version: version.version,
      ...body,
      isLatest,
      haystack: haystack(shownKey(key), version),
      digest: hash('sha256', text, 'base64url'),
    });
    yield;
  }
  const written = bytes.append(bodies);
  const versions = drafts.map((draft, index) => ({ ...draft, ...(written.places[index] ?? NOWHERE) }));
  return { bytes: written.bytes, versions };
}

interface Place {
  readonly start: number;
  readonly end: number;
}

const NOWHERE: Place = { start: 0, end: 0 };
const COMMA = 0x2c;
const CHUNK_BYTES = 1024 * 1024;

/**
 * Bodies one after the other with a comma behind each, in chunks: a single buffer would have to be measured first or
 * copied at the end, and both need all of the text in memory a second time.
 */
class BodyBytes {
  readonly #chunkBytes: number;
  #chunk = Buffer.alloc(0);
  #used = 0;

  constructor(chunkBytes: number) {
    this.#chunkBytes = chunkBytes;
  }

  /** The bodies of one entry lie in one chunk. */
  append(bodies: readonly string[]): { readonly bytes: Buffer; readonly places: readonly Place[] } {
    const size = bodies.reduce((sum, body) => sum + Buffer.byteLength(body) + 1, 0);
    if (this.#used + size > this.#chunk.length) {
      this.#chunk = Buffer.allocUnsafeSlow(Math.max(size, this.#chunkBytes));
      this.#used = 0;
    }
    const places = bodies.map((body) => {
      const start = this.#used;
      const end = start + this.#chunk.write(body, start);
      this.#chunk[end] = COMMA;
      this.#used = end + 1;
      return { start, end };
    });
    return { bytes: this.#chunk, places };
  }
}
