/** What was made ahead of the workload that will have it. */
export interface Spare {
  readonly id: string;
  readonly name: string;
  /** Idempotent. */
  readonly remove: () => Promise<void>;
}

/**
 * What takes long to make, made ahead of the next workload: one for each key, in the one process that may hand it out, which
 * removes what is left.
 */
export class Spares {
  readonly #ready = new Map<string, Promise<Spare>>();
  #made = 0;
  #closed = false;

  /** Makes one, unless one is there; `isFirst` where this process has made none before. Fails as `make` does. */
  async make(key: string, make: (isFirst: boolean) => Promise<Spare>): Promise<void> {
    if (this.#closed || this.#ready.has(key)) return;
    const making = make(this.#made === 0);
    this.#made += 1;
    this.#ready.set(key, making);
    try {
      await making;
    } catch (error) {
      if (this.#ready.get(key) === making) this.#ready.delete(key);
      throw error;
    }
  }

  /** The one that is ready, or is being made: its caller's alone from now on. Undefined where there is none. */
  async take(key: string): Promise<Spare | undefined> {
    const one = this.#ready.get(key);
    this.#ready.delete(key);
    return one?.catch(() => undefined);
  }

  /** Removes what is ready. Fails as `remove` does. */
  async clear(): Promise<void> {
    const all = await Promise.all([...this.#ready.keys()].map((key) => this.take(key)));
    await Promise.all(all.flatMap((one) => (one === undefined ? [] : [one.remove()])));
  }

  /** As `clear`; nothing is made any more. */
  close(): Promise<void> {
    this.#closed = true;
    return this.clear();
  }
}
