/** What unfinished requests of all clients together may hold: one process hosts the proxies of all workloads. */
const LIMIT_BYTES = 64 * 1024 * 1024;

/** Who holds a body. */
export interface Yielding {
  /** The body must not be held any longer. It is not counted any more then. */
  giveWay(): void;
}

/** One request's body, from its first byte until it has gone on to the server. */
export interface HeldBody {
  add(bytes: number): void;
  /** Idempotent. */
  release(): void;
}

/**
 * Bounds the bodies that have arrived and not gone on. When all together hold too much, the oldest gives way: a body of
 * somebody who means to send it is here within moments, one that is held open on purpose is the oldest sooner or later.
 */
export class BodyBudget {
  readonly #limit: number;
  /** Oldest first. */
  readonly #held = new Map<Yielding, number>();
  #total = 0;

  constructor(limitBytes = LIMIT_BYTES) {
    this.#limit = limitBytes;
  }

  /** Counts what `body` holds from now on. */
  hold(body: Yielding): HeldBody {
    this.#held.set(body, 0);
    return {
      add: (bytes) => {
        const before = this.#held.get(body);
        if (before === undefined) return;
        this.#held.set(body, before + bytes);
        this.#total += bytes;
        while (this.#total > this.#limit) this.#dropOldest();
      },
      release: () => this.#release(body),
    };
  }

  #dropOldest(): void {
    for (const [body, bytes] of this.#held) {
      if (bytes === 0) continue;
      this.#release(body);
      body.giveWay();
      return;
    }
  }

  #release(body: Yielding): void {
    this.#total -= this.#held.get(body) ?? 0;
    this.#held.delete(body);
  }
}
