/** A map that forgets its oldest entry when it is full: for what may be remembered but need not be. */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#limit) return;
    const oldest = this.#entries.keys().next();
    if (oldest.done !== true) this.#entries.delete(oldest.value);
  }

  /** Forgets every entry with that value. */
  forget(value: V): void {
    for (const [key, held] of this.#entries) if (held === value) this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
