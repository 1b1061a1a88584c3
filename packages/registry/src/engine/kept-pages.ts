import { LRUCache } from 'lru-cache';
import type { ClaimClass } from './claim-classes.ts';

export interface KeptPage {
  /** Of these bytes and nothing else. */
  readonly etag: string;
  readonly pieces: readonly Buffer[];
}

const MOST_BYTES = 32 * 1024 * 1024;
/** What an entry costs besides bytes of its own; pieces that are few lie in the blocks. */
const ENTRY_BYTES = 1024;
/** Registries times groups of callers who see the same. */
const MOST_STATES = 10_000;

/** What callers who see the same claim sets see of a registry. The same object as long as nothing of it changes. */
export interface ViewState {
  readonly id: number;
  readonly visible: (claimClass: ClaimClass) => boolean;
}

/** Whose view of what. */
export interface ViewKey {
  readonly registry: string;
  /** Equal for callers who see the same claim sets. */
  readonly visibility: string;
  readonly visible: (claimClass: ClaimClass) => boolean;
}

/**
 * Pages and their tags by what they were made from. Callers who see the same claim sets get the same page, and there are
 * far fewer such groups than callers. Snapshots that follow one another by changes of single entries share the pages, and
 * a change ends those of the callers only who see something of it: who has to wait for a page to be made again learns
 * nothing about what is hidden.
 */
export class KeptPages {
  readonly #shared: Shared;
  readonly #states: Map<string, ViewState>;

  constructor(shared: Shared = newShared(), states = new Map<string, ViewState>()) {
    this.#shared = shared;
    this.#states = states;
  }

  /** The pages after entries changed, whose copies are or were of these classes, by registry. */
  after(changes: ReadonlyMap<string, ReadonlySet<ClaimClass>>): KeptPages {
    const unchanged = [...this.#states].filter(([key, { visible }]) => {
      const touched = changes.get(registryOf(key));
      return touched === undefined || ![...touched].some(visible);
    });
    return new KeptPages(this.#shared, new Map(unchanged));
  }

  /** Whether pages of the other may be among these. */
  follows(other: KeptPages | undefined): boolean {
    return other !== undefined && other.#shared === this.#shared;
  }

  stateOf({ registry, visibility, visible }: ViewKey): ViewState {
    const key = `${visibility} ${registry}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    if (this.#states.size >= MOST_STATES) this.#states.clear();
    const state = { id: this.#shared.next++, visible };
    this.#states.set(key, state);
    return state;
  }

  get(key: string): KeptPage | undefined {
    return this.#shared.pages.get(key);
  }

  set(key: string, page: KeptPage): void {
    this.#shared.pages.set(key, page);
  }

  /** The page, where somebody else has asked for it and it is not ready. */
  making(key: string): Promise<KeptPage> | undefined {
    return this.#shared.making.get(key);
  }

  /** Keeps a page when it is ready, and meanwhile the promise of it. */
  async make(key: string, ready: Promise<KeptPage>): Promise<KeptPage> {
    this.#shared.making.set(key, ready);
    try {
      const page = await ready;
      this.set(key, page);
      return page;
    } finally {
      this.#shared.making.delete(key);
    }
  }
}

interface Shared {
  readonly pages: LRUCache<string, KeptPage>;
  readonly making: Map<string, Promise<KeptPage>>;
  next: number;
}

function newShared(): Shared {
  const pages = new LRUCache<string, KeptPage>({
    maxSize: MOST_BYTES,
    // Keys hold what callers search for.
    sizeCalculation: ({ pieces }, key) =>
      ENTRY_BYTES + 2 * key.length + (pieces.length === 1 ? (pieces[0]?.length ?? 0) : 0),
  });
  return { pages, making: new Map(), next: 0 };
}

/** A fingerprint holds no space. */
function registryOf(key: string): string {
  return key.slice(key.indexOf(' ') + 1);
}
