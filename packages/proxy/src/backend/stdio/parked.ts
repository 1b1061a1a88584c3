import type { Clock, Timer } from '@skep/core/time/clock.ts';
import type { Request } from '../../message/json-rpc.ts';

/** Clients open their stream right after `notifications/initialized`, and servers ask for roots just then. */
const WAIT_MS = 5_000;
const MAX_PARKED = 16;
/** The text of a larger request is not worth keeping. */
const MAX_CHARACTERS = 64 * 1024;

/** Requests of the server that came before the only client opened a stream to hear them. */
export class Parked {
  readonly #clock: Clock;
  readonly #onExpired: (request: Request) => void;
  readonly #waiting = new Map<Request, Timer>();

  constructor(clock: Clock, onExpired: (request: Request) => void) {
    this.#clock = clock;
    this.#onExpired = onExpired;
  }

  /** False when too many wait already. */
  park(request: Request): boolean {
    if (this.#waiting.size >= MAX_PARKED || request.text.length > MAX_CHARACTERS) return false;
    const timer = this.#clock.after(WAIT_MS, () => {
      if (this.#waiting.delete(request)) this.#onExpired(request);
    });
    this.#waiting.set(request, timer);
    return true;
  }

  /** Everything that waits, oldest first; it waits no longer. */
  release(): readonly Request[] {
    const requests = [...this.#waiting.keys()];
    for (const timer of this.#waiting.values()) timer.cancel();
    this.#waiting.clear();
    return requests;
  }
}
