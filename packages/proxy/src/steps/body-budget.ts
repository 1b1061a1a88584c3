/** What unfinished requests of all clients together may hold: one process hosts the proxies of all workloads. */
const MAX_BYTES = 64 * 1024 * 1024;

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
  /** A ring in which the oldest stands behind it and the newest before it. */
  readonly #ends = new Place();
  #total = 0;

  constructor(limitBytes = MAX_BYTES) {
    this.#limit = limitBytes;
  }

  /** Counts what `body` holds from now on. */
  hold(body: Yielding): HeldBody {
    const place = new Place(body);
    place.enter(this.#ends);
    return {
      add: (bytes) => {
        if (place.body === undefined) return;
        place.bytes += bytes;
        this.#total += bytes;
        while (this.#total > this.#limit) this.#dropOldest();
      },
      release: () => this.#release(place),
    };
  }

  #dropOldest(): void {
    let place = this.#ends.newer;
    while (place.bytes === 0) place = place.newer;
    const { body } = place;
    this.#release(place);
    body?.giveWay();
  }

  #release(place: Place): void {
    this.#total -= place.bytes;
    place.leave();
  }
}

/**
 * One of a linked list, because every call enters and leaves it: a map would be made anew all the time, and what it held
 * would be kept until a full collection.
 */
class Place {
  body: Yielding | undefined;
  bytes = 0;
  older: Place = this;
  newer: Place = this;

  constructor(body?: Yielding) {
    this.body = body;
  }

  enter(ends: Place): void {
    this.older = ends.older;
    this.newer = ends;
    ends.older.newer = this;
    ends.older = this;
  }

  leave(): void {
    this.older.newer = this.newer;
    this.newer.older = this.older;
    this.older = this;
    this.newer = this;
    this.body = undefined;
    this.bytes = 0;
  }
}
