import { setImmediate } from 'node:timers/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Work in turns: undefined while it is not finished. */
export type Walk<T> = () => T | undefined;

/** So many may be under way: the last of them waits some seconds for the others. */
const MOST_WALKS = 64;

/**
 * Who takes long stands in one line with the others: whenever the event loop has gone round, one turn of one of them is
 * done, so that any other request waits for one turn, however many walks there are. Beyond so many fails with
 * `registry/not-ready`.
 */
export class Turns {
  readonly #most: number;
  /** One turn of each; true when that was its last. */
  readonly #line: (() => boolean)[] = [];
  #walks = 0;

  constructor(most = MOST_WALKS) {
    this.#most = most;
  }

  async finish<T>(walk: Walk<T>): Promise<T> {
    if (this.#walks >= this.#most) {
      throw new SkepError('registry/not-ready', { message: 'too many long searches are under way' });
    }
    this.#walks += 1;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#line.push(() => {
      try {
        const found = walk();
        if (found === undefined) return false;
        resolve(found);
      } catch (error) {
        reject(error);
      }
      return true;
    });
    if (this.#walks === 1) void this.#go();
    return promise;
  }

  async #go(): Promise<void> {
    while (this.#walks > 0) {
      await setImmediate();
      const turn = this.#line.shift();
      if (turn === undefined) return;
      if (turn()) this.#walks -= 1;
      else this.#line.push(turn);
    }
  }
}
