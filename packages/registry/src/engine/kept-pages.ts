import { LRUCache } from 'lru-cache';

const MOST_BYTES = 32 * 1024 * 1024;

/**
 * Pages that had to be put together from many pieces, by their tag. Callers who see the same claim sets get the same
 * page, and there are far fewer such groups than callers. Lives and ends with its snapshot, so nothing in it is stale.
 */
export class KeptPages {
  readonly #pages = new LRUCache<string, Buffer>({
    maxSize: MOST_BYTES,
    sizeCalculation: (page) => page.length,
  });

  get(tag: string): Buffer | undefined {
    return this.#pages.get(tag);
  }

  set(tag: string, page: Buffer): void {
    this.#pages.set(tag, page);
  }
}
