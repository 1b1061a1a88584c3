import { entryName, type Derived } from './derive-entry.ts';

/**
 * The bytes that all parts of a source may hold together. What was shown before is never crowded out by what is new: it may
 * grow to twice as much.
 */
export class Room {
  readonly most: number;
  readonly #before: ReadonlySet<string>;
  #used = 0;

  /** `before` are the names of entries that the store holds. */
  constructor(most: number, before: ReadonlySet<string>) {
    this.most = most;
    this.#before = before;
  }

  isKnown(namespace: string, name: string): boolean {
    return this.#before.has(entryName(namespace, name));
  }

  get isOver(): boolean {
    return this.#used > this.most;
  }

  /** Whether so many more bytes fit into so many times the room. */
  take(bytes: number, times: number): boolean {
    if (this.#used + bytes > times * this.most) return false;
    this.#used += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#used -= bytes;
  }
}

/** What one part holds, by namespace and name. */
export class Held {
  readonly derived = new Map<string, Derived>();
  readonly #room: Room;
  /** What this replaces one day. What says the same as there stays the same object, and takes no room. */
  readonly #former: ReadonlyMap<string, Derived>;
  /** What a list has brought that was not shown before. */
  readonly #fresh = new Set<string>();
  readonly #isListing: boolean;
  isOver = false;

  constructor(room: Room, former?: ReadonlyMap<string, Derived>) {
    this.#room = room;
    this.#former = former ?? new Map();
    this.#isListing = former !== undefined;
  }

  /**
   * Whether anything is another one now. What has no room is not held, nor is an earlier state of it, which might be shown
   * to more than the later one.
   */
  set(key: string, derived: Derived): boolean {
    const before = this.derived.get(key);
    if (before !== undefined && isSame(before, derived)) return false;
    const isGone = this.delete(key);
    const former = this.#former.get(key);
    if (former !== undefined && isSame(former, derived)) {
      this.derived.set(key, former);
      return true;
    }
    const [namespace = '', name = ''] = key.split('/');
    const isKnown = isGone || former !== undefined || this.#room.isKnown(namespace, name);
    // While a list is read, what it replaces is still there.
    const times = 1 + Number(isKnown) + Number(this.#isListing);
    if (this.#room.take(sizeOf(key, derived), times)) {
      this.derived.set(key, derived);
      if (this.#isListing && !isKnown) this.#fresh.add(key);
      return true;
    }
    const isNews = !this.isOver;
    this.isOver = true;
    return isGone || isNews;
  }

  delete(key: string): boolean {
    const before = this.derived.get(key);
    if (before === undefined) return false;
    if (before !== this.#former.get(key)) this.#room.giveBack(sizeOf(key, before));
    return this.derived.delete(key);
  }

  /** Gives back the room of the former ones that are no longer held; what is new has to do with what is left then. */
  replaceFormer(): Held {
    for (const [key, one] of this.#former) {
      if (this.derived.get(key) !== one) this.#room.giveBack(sizeOf(key, one));
    }
    for (const key of [...this.#fresh].toReversed()) {
      if (!this.#room.isOver) break;
      this.isOver = this.delete(key) || this.isOver;
    }
    const next = new Held(this.#room);
    next.isOver = this.isOver;
    for (const [key, one] of this.derived) next.derived.set(key, one);
    return next;
  }

  /** Gives back everything but what the former ones hold. */
  abandon(): void {
    for (const key of this.derived.keys()) this.delete(key);
  }
}

function isSame(a: Derived, b: Derived): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function sizeOf(key: string, derived: Derived): number {
  const [text, why] =
    'server' in derived ? [derived.server.json, derived.server.claims] : [derived.name, derived.refusal];
  return key.length + text.length + why.length;
}
