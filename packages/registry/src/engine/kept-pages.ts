import { LRUCache } from 'lru-cache';

export interface KeptPage {
  /** Of these bytes and nothing else. */
  readonly etag: string;
  readonly pieces: readonly Buffer[];
}

const MOST_BYTES = 32 * 1024 * 1024;
/** What an entry costs besides bytes of its own; pieces that are few lie in the blocks. */
const ENTRY_BYTES = 1024;

/**
 * Pages and their tags by what they were made from. Callers who see the same claim sets get the same page, and there are
 * far fewer such groups than callers. Lives and ends with its snapshot, so nothing in it is stale.
 */
export class KeptPages {
  readonly #pages = new LRUCache<string, KeptPage>({
    maxSize: MOST_BYTES,
    // Keys hold what callers search for, which may be long.
    sizeCalculation: ({ pieces }, key) =>
      ENTRY_BYTES + 2 * key.length + (pieces.length === 1 ? (pieces[0]?.length ?? 0) : 0),
  });

  get(key: string): KeptPage | undefined {
    return this.#pages.get(key);
  }

  set(key: string, page: KeptPage): void {
    this.#pages.set(key, page);
  }
}
