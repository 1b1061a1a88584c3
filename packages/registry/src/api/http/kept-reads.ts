import type { Authority } from '../../access/authority.ts';
import type { KeptPages, ViewState } from '../../engine/kept-pages.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import type { RawParameters } from '../route/parameter.ts';
import type { Route } from '../route/route.ts';

/** A successful read, ready to be written again. Its pieces are the snapshot's own bytes, or a copy of many of them. */
export interface Read {
  readonly route: Route;
  readonly pattern: string;
  readonly path: RawParameters;
  readonly etag: string;
  /** Names and values in turn, the request id first; without and with what describes a body. */
  readonly headers: string[];
  readonly withBody: string[];
  readonly pieces: readonly Buffer[];
  /** Bytes of all pieces. */
  readonly length: number;
}

const MOST_READS = 10_000;
/** Of copies. A caller can ask for as many different pages as it likes, each of a megabyte. */
const MOST_BYTES = 64 * 1024 * 1024;
/** Longer targets are rare, and a caller could make as many of them as it likes. */
const LONGEST_TARGET = 512;

interface Kept {
  readonly read: Read;
  /** What the caller saw of the registry. */
  readonly state: ViewState | undefined;
  /** Those of the newest snapshot for which it is known to hold; the snapshot itself would hold what was replaced since. */
  pages: KeptPages;
}

/** Where a read is kept. */
interface KeptAt {
  readonly reads: Map<string, Kept>;
  readonly target: string;
}

/**
 * What callers read lately, by caller and request target. A read holds as long as nothing changes that its caller sees of
 * the registry; other changes leave it, because whoever measures the time of an answer would learn of them.
 */
export class KeptReads {
  #pages: KeptPages | undefined;
  #reads = new WeakMap<Authority, Map<string, Kept>>();
  readonly #places = new Map<ViewState | undefined, KeptAt[]>();
  #count = 0;
  #counted = new WeakSet<Buffer>();
  #bytes = 0;

  find(snapshot: Snapshot, authority: Authority, target: string): Read | undefined {
    const kept = this.#reads.get(authority)?.get(target);
    if (kept === undefined || kept.pages === snapshot.pages) return kept?.read;
    if (kept.state === undefined || kept.state !== stateOf(snapshot, authority, kept.read)) return undefined;
    kept.pages = snapshot.pages;
    return kept.read;
  }

  keep(
    snapshot: Snapshot,
    authority: Authority,
    { target, read }: { readonly target: string; readonly read: Read },
  ): void {
    if (target.length > LONGEST_TARGET) return;
    const { pages } = snapshot;
    if (!pages.follows(this.#pages) || this.#count >= MOST_READS || this.#bytes >= MOST_BYTES) this.#clear();
    else if (pages !== this.#pages) this.#dropEnded();
    this.#pages = pages;
    const state = stateOf(snapshot, authority, read);
    const reads = this.#reads.get(authority) ?? new Map<string, Kept>();
    this.#reads.set(authority, reads.set(target, { read, pages, state }));
    const places = this.#places.get(state) ?? [];
    places.push({ reads, target });
    this.#places.set(state, places);
    this.#count += 1;
    for (const piece of read.pieces) this.#weigh(piece);
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
      for (const { reads, target } of places) if (reads.get(target)?.state === state) reads.delete(target);
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

function stateOf(snapshot: Snapshot, authority: Authority, { path }: Read): ViewState | undefined {
  const { registry } = path;
  if (typeof registry !== 'string' || !snapshot.registries.has(registry)) return undefined;
  const { visible, fingerprint } = snapshot.visibility(authority);
  return snapshot.pages.stateOf({ registry, visibility: fingerprint, visible });
}
