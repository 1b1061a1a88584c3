/** Where an answer goes: a socket, or what stands for one. Destroyed when the caller has left; nobody hears the answer then. */
export interface Connection {
  readonly destroyed: boolean;
}

/** Who waits for one page. */
export class Callers {
  readonly #waiting: Connection[];

  constructor(first: Connection) {
    this.#waiting = [first];
  }

  add(caller: Connection): void {
    this.#waiting.push(caller);
  }

  /** Whether one of them is still there; those who have left are forgotten. */
  readonly areWaiting = (): boolean => {
    while (this.#waiting.at(-1)?.destroyed === true) this.#waiting.pop();
    return this.#waiting.length > 0;
  };
}
