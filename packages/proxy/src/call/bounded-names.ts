/** Stands for all names that are not told apart. */
export const OTHER = '_other';
const MAX_BYTES = 128;
/** Names of calls that a server took. */
const MAX_NAMES = 1_000;
/** Names that nothing but failures are known of: a client can make them up. */
const MAX_DOUBTFUL = 100;

/** Whether a server knew a name: it took the call, it failed in some way, or it said that there is no such thing. */
export type Known = 'taken' | 'failed' | 'unknown';

/**
 * Names that clients call things by, as many as can be kept for ever. Neither a client that makes names up nor a server that
 * takes all of them adds more, or takes the place of one that has served.
 */
export class BoundedNames {
  readonly #taken = new Set<string>();
  readonly #doubtful = new Set<string>();

  /** The name to count a call under: its own, at most 128 bytes of it, or `OTHER`. */
  label(name: string, known: Known): string {
    const short = shortName(name);
    if (this.#taken.has(short)) return short;
    if (known === 'taken' && this.#taken.size < MAX_NAMES) {
      this.#doubtful.delete(short);
      this.#taken.add(short);
      return short;
    }
    if (this.#doubtful.has(short)) return short;
    if (known !== 'failed' || this.#doubtful.size >= MAX_DOUBTFUL) return OTHER;
    this.#doubtful.add(short);
    return short;
  }
}

/** At most 128 bytes, and dots for the rest. */
function shortName(name: string): string {
  // No character of a text that short is more than three bytes.
  if (name.length * 3 <= MAX_BYTES || Buffer.byteLength(name) <= MAX_BYTES) return name.toWellFormed();
  const cut = Buffer.from(name.slice(0, MAX_BYTES)).subarray(0, MAX_BYTES).toString();
  return `${cut.replace(/\uFFFD+$/u, '')}...`;
}
