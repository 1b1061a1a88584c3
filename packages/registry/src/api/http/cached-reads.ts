import type { Authority } from '../../access/authority.ts';
import type { KeptPages, ViewState } from '../../engine/kept-pages.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import type { ApiRequest, Prepared } from './request.ts';

/** A request, as far as it decides what is read. */
export type ReadRequest = Pick<ApiRequest, 'row' | 'authority' | 'url' | 'params'>;

const MAX_READS = 10_000;
/** Upper bound for pages that are copies; callers choose how many they ask for, each of a megabyte. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Longer targets are rare, and a caller could make as many of them as it likes. */
const MAX_TARGET = 512;

interface Cached {
  /** Other methods on the same target have rows of their own. */
  readonly row: ApiRequest['row'];
  readonly prepared: Prepared;
  /** What the caller saw of the registry. */
  readonly state: ViewState | undefined;
  /** Those of the newest snapshot for which it is known to hold; the snapshot itself would hold what was replaced since. */
  pages: KeptPages;
}

/** Where a read is found. */
interface Place {
  readonly reads: Map<string, Cached>;
  readonly url: string;
}

/**
 * What callers read lately, by caller and request target: successful answers whose pieces are the snapshot's own bytes, or
 * a copy of many of them. A read holds as long as nothing changes that its caller sees of
 * the registry; other changes leave it, because whoever measures the time of an answer would learn of them.
 */
export class CachedReads {
  #pages: KeptPages | undefined;
  #reads = new WeakMap<Authority, Map<string, Cached>>();
  readonly #places = new Map<ViewState | undefined, Place[]>();
  #count = 0;
  #counted = new WeakSet<Buffer>();
  #bytes = 0;

  find(snapshot: Snapshot, { row, authority, url, params }: ReadRequest): Prepared | undefined {
    const cached = authority === undefined ? undefined : this.#reads.get(authority)?.get(url);
    if (authority === undefined || cached?.row !== row || cached === undefined) return undefined;
    if (cached.pages === snapshot.pages) return cached.prepared;
    if (cached.state === undefined || cached.state !== stateOf(snapshot, authority, params)) return undefined;
    cached.pages = snapshot.pages;
    return cached.prepared;
  }

  /** Caches an answer that has a tag. */
  keep(snapshot: Snapshot, { row, authority, url, params }: ReadRequest, prepared: Prepared): void {
    if (authority === undefined || prepared.etag === undefined || url.length > MAX_TARGET) return;
    const { pages } = snapshot;
    if (!pages.follows(this.#pages) || this.#count >= MAX_READS || this.#bytes >= MAX_BYTES) this.#clear();
    else if (pages !== this.#pages) this.#dropEnded();
    this.#pages = pages;
    const state = stateOf(snapshot, authority, params);
    const reads = this.#reads.get(authority) ?? new Map<string, Cached>();
    this.#reads.set(authority, reads.set(url, { row, prepared, pages, state }));
    const places = this.#places.get(state) ?? [];
    places.push({ reads, url });
    this.#places.set(state, places);
    this.#count += 1;
    for (const piece of prepared.pieces) this.#weigh(piece);
  }

  #clear(): void {
    this.#reads = new WeakMap();
    this.#places.clear();
    this.#count = 0;
    this.#counted = new WeakSet();
    this.#bytes = 0;
  }

  /** Reads of what has changed hold bytes that are served no more, as large as what the pieces were cut from. */
  #dropEnded(): void {
    for (const [state, places] of this.#places) {
      if (state?.isOver === false) continue;
      for (const { reads, url } of places) if (reads.get(url)?.state === state) reads.delete(url);
      this.#places.delete(state);
      this.#count -= places.length;
    }
  }

  /** A piece that has its memory for itself is a copy; callers who see the same share it. */
  #weigh(piece: Buffer): void {
    if (piece.byteLength < piece.buffer.byteLength || this.#counted.has(piece)) return;
    this.#counted.add(piece);
    this.#bytes += piece.byteLength;
  }
}

function stateOf(
  snapshot: Snapshot,
  authority: Authority,
  { registry }: ReadRequest['params'],
): ViewState | undefined {
  if (typeof registry !== 'string' || !snapshot.registries.has(registry)) return undefined;
  return snapshot.pages.stateOf(registry, snapshot.visibility(authority));
}
