import type { Clock, Timer } from '@skep/core/time/clock.ts';
import type { Mux } from '../mux/mux.ts';

/** What the proxy itself opened to ask the server is closed when it asks no more. */
const OWN_IDLE_MS = 10_000;
/** Servers may keep something from one call to the next, and modern clients do not say when they have gone. */
const MODERN_IDLE_MS = 10 * 60_000;

/** What the proxy itself opened to ask the server: on its own behalf, or for the modern clients of one principal. */
export interface Own {
  readonly mux: Mux;
  readonly idle: Timer;
  /** Questions that wait for an answer. */
  asked: number;
}

interface OwnConversationsOptions {
  readonly clock: Pick<Clock, 'after'>;
  open(): Mux;
  end(mux: Mux): void;
}

/** Conversations that are of no client's session, by principal; that of the proxy itself has no name. Each ends when it is idle. */
export class OwnConversations {
  readonly #options: OwnConversationsOptions;
  readonly #owns = new Map<string, Own>();

  constructor(options: OwnConversationsOptions) {
    this.#options = options;
  }

  get(key: string): Own | undefined {
    return this.#owns.get(key);
  }

  /** Opens one where there is none. */
  of(key: string): Own {
    const known = this.#owns.get(key);
    if (known !== undefined) return known;
    const own: Own = {
      mux: this.#options.open(),
      asked: 0,
      idle: this.#options.clock.after(key === '' ? OWN_IDLE_MS : MODERN_IDLE_MS, () => {
        if (own.asked > 0) own.idle.restart();
        else if (this.#owns.get(key) === own) this.end(key);
      }),
    };
    this.#owns.set(key, own);
    return own;
  }

  /** A server may take long; it is idle only when nothing is asked of it. */
  async asking<T>(own: Own, work: () => Promise<T>): Promise<T> {
    own.asked += 1;
    try {
      return await work();
    } finally {
      own.asked -= 1;
      own.idle.restart();
    }
  }

  /** One thing less is asked by `mux`. */
  rest(key: string, mux: Mux): void {
    const own = this.#owns.get(key);
    if (own?.mux !== mux) return;
    own.asked -= 1;
    own.idle.restart();
  }

  end(key: string): void {
    const own = this.#owns.get(key);
    this.#owns.delete(key);
    own?.idle.cancel();
    if (own) this.#options.end(own.mux);
  }

  /** Of whoever has that mux. */
  endThat(mux: Mux): void {
    for (const [key, own] of this.#owns) if (own.mux === mux) this.end(key);
  }

  endAll(): void {
    for (const key of this.#owns.keys()) this.end(key);
  }
}
