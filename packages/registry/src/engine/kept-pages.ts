import { LRUCache } from 'lru-cache';
import type { ClaimClass } from '../access/claim-set.ts';
import type { Visibility } from '../access/visibility.ts';

/** JSON in pieces. */
export interface Page {
  /** Of these bytes and nothing else: equal tags promise equal bytes. */
  readonly etag: string;
  readonly pieces: readonly Buffer[];
}

/** Where an answer goes: a socket, or what stands for one. Destroyed when the caller has left; nobody hears the answer then. */
export interface Connection {
  readonly destroyed: boolean;
}

const MAX_BYTES = 32 * 1024 * 1024;
/** What an entry costs besides bytes of its own; pieces that are few lie in the blocks. */
const ENTRY_BYTES = 1024;
/** Registries times groups of callers who see the same. */
const MAX_STATES = 10_000;

/** What callers who see the same claim sets see of a registry. The same object as long as nothing of it changes. */
export interface ViewState {
  readonly id: number;
  readonly visible: (claimClass: ClaimClass) => boolean;
  /** Whether something of it has changed, after which nothing of it is kept: its pages hold what is served no more. */
  isOver: boolean;
  /** Which pages of it are kept. */
  readonly pages: Set<string>;
}

/** What a page is made from: a view, and what was asked of it. */
export interface PageKey {
  readonly state: ViewState;
  /** Of state and question, one text for equal pages. */
  readonly text: string;
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
  #isOver = false;

  constructor(shared: Shared = newShared(), states = new Map<string, ViewState>()) {
    this.#shared = shared;
    this.#states = states;
  }

  /** The pages after entries changed, whose copies are or were of these classes, by registry. Ends these. */
  after(changes: ReadonlyMap<string, ReadonlySet<ClaimClass>>): KeptPages {
    this.#isOver = true;
    const unchanged = new Map<string, ViewState>();
    for (const [key, state] of this.#states) {
      const touched = changes.get(registryOf(key));
      if (touched !== undefined && [...touched].some(state.visible)) this.#end(state);
      else unchanged.set(key, state);
    }
    return new KeptPages(this.#shared, unchanged);
  }

  /** Whether pages of the other may be among these. */
  follows(other: KeptPages | undefined): boolean {
    return other !== undefined && other.#shared === this.#shared;
  }

  stateOf(registry: string, { fingerprint, visible }: Visibility): ViewState {
    const key = `${fingerprint} ${registry}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    const state = { id: this.#shared.next++, visible, isOver: this.#isOver, pages: new Set<string>() };
    // A request of before asks, and nobody would end it.
    if (this.#isOver) return state;
    if (this.#states.size >= MAX_STATES) {
      for (const state of this.#states.values()) this.#end(state);
      this.#states.clear();
    }
    this.#states.set(key, state);
    return state;
  }

  /** The page, made once for all who see the same, also while it is made, as long as one of them waits. */
  page(
    key: PageKey,
    caller: Connection,
    make: (isWanted: () => boolean) => Page | Promise<Page>,
  ): Page | Promise<Page> {
    const { pages, making } = this.#shared;
    const kept = pages.get(key.text);
    if (kept !== undefined) return kept.page;
    const underWay = making.get(key.text);
    if (underWay !== undefined) {
      underWay.callers.push(caller);
      return underWay.page;
    }
    const callers = [caller];
    const made = make(() => areWaiting(callers));
    if (!(made instanceof Promise)) return this.#keep(key, made);
    const page = made.then((one) => this.#keep(key, one)).finally(() => making.delete(key.text));
    making.set(key.text, { page, callers });
    return page;
  }

  #keep({ state, text }: PageKey, page: Page): Page {
    if (state.isOver) return page;
    this.#shared.pages.set(text, { page, state });
    if (this.#shared.pages.has(text)) state.pages.add(text);
    return page;
  }

  #end(state: ViewState): void {
    state.isOver = true;
    for (const text of state.pages) this.#shared.pages.delete(text);
  }
}

interface Shared {
  readonly pages: LRUCache<string, { readonly page: Page; readonly state: ViewState }>;
  /** Pages that are not ready, and who waits for them. */
  readonly making: Map<string, { readonly page: Promise<Page>; readonly callers: Connection[] }>;
  next: number;
}

function newShared(): Shared {
  const pages: Shared['pages'] = new LRUCache({
    maxSize: MAX_BYTES,
    // Keys hold what callers search for.
    sizeCalculation: ({ page: { pieces } }, key) =>
      ENTRY_BYTES + 2 * key.length + (pieces.length === 1 ? (pieces[0]?.length ?? 0) : 0),
    dispose: ({ state }, key) => state.pages.delete(key),
  });
  return { pages, making: new Map(), next: 0 };
}

/** A fingerprint holds no space. */
function registryOf(key: string): string {
  return key.slice(key.indexOf(' ') + 1);
}

/** Whether one of them is still there; those who have left are forgotten. */
function areWaiting(callers: Connection[]): boolean {
  while (callers.at(-1)?.destroyed === true) callers.pop();
  return callers.length > 0;
}
