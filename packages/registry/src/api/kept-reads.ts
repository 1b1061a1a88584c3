import type { Authority } from '../access/authority.ts';
import type { Snapshot } from '../engine/snapshot.ts';
import type { RawParameters } from './parameter.ts';
import type { Route } from './route.ts';

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

/**
 * What callers read lately, by caller and request target. A read holds for one snapshot, which fixes entries, claims and
 * gates, and for one authority, which fixes what its caller may see; when either is another one, it is made anew.
 */
export class KeptReads {
  #snapshot: Snapshot | undefined;
  #reads = new WeakMap<Authority, Map<string, Read>>();
  #count = 0;
  #counted = new WeakSet<Buffer>();
  #bytes = 0;

  find(snapshot: Snapshot, authority: Authority, target: string): Read | undefined {
    return snapshot === this.#snapshot ? this.#reads.get(authority)?.get(target) : undefined;
  }

  keep(
    snapshot: Snapshot,
    authority: Authority,
    kept: { readonly target: string; readonly read: Read },
  ): void {
    if (kept.target.length > LONGEST_TARGET) return;
    if (snapshot !== this.#snapshot || this.#count >= MOST_READS || this.#bytes >= MOST_BYTES) {
      this.#snapshot = snapshot;
      this.#reads = new WeakMap();
      this.#count = 0;
      this.#counted = new WeakSet();
      this.#bytes = 0;
    }
    const reads = this.#reads.get(authority) ?? new Map<string, Read>();
    this.#reads.set(authority, reads.set(kept.target, kept.read));
    this.#count += 1;
    for (const piece of kept.read.pieces) this.#weigh(piece);
  }

  /** A piece that has its memory for itself is a copy; callers who see the same share it. */
  #weigh(piece: Buffer): void {
    if (piece.byteLength < piece.buffer.byteLength || this.#counted.has(piece)) return;
    this.#counted.add(piece);
    this.#bytes += piece.byteLength;
  }
}
