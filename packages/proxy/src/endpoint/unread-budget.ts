/** A response that its client may be slow to read. */
export interface Reader {
  /** Bytes that wait for it. */
  readonly unread: number;
  /** Disconnects it. */
  cut(): void;
}

/** What all clients together may leave unread: one process hosts the proxies of all workloads. */
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Bounds what slow readers make the process remember. When all together leave too much unread, the one with most is cut off.
 * A reader that is alone is left to its own bounds.
 */
export class UnreadBudget {
  readonly #limit: number;
  readonly #counted = new Map<Reader, number>();
  #total = 0;

  constructor(limitBytes = MAX_BYTES) {
    this.#limit = limitBytes;
  }

  /** To be called when `reader` was given more than it takes at once, and when it has taken some of it. */
  update(reader: Reader): void {
    this.#count(reader);
    if (this.#total <= this.#limit) return;
    // Readers report when they fall behind, not each time they catch up a little.
    for (const each of Array.from(this.#counted.keys())) this.#count(each);
    while (this.#total > this.#limit && this.#counted.size > 1) this.#cutSlowest();
  }

  /** The reader is gone. */
  release(reader: Reader): void {
    this.#total -= this.#counted.get(reader) ?? 0;
    this.#counted.delete(reader);
  }

  #count(reader: Reader): void {
    this.release(reader);
    const { unread } = reader;
    if (unread === 0) return;
    this.#counted.set(reader, unread);
    this.#total += unread;
  }

  #cutSlowest(): void {
    let slowest: Reader | undefined;
    let most = 0;
    for (const [reader, unread] of this.#counted) if (unread > most) [slowest, most] = [reader, unread];
    if (slowest === undefined) return;
    this.release(slowest);
    slowest.cut();
  }
}
