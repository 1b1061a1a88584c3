import { setImmediate } from 'node:timers/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Work in turns: undefined while it is not finished. */
export type Walk<T> = () => T | undefined;

/** So many may be under way: the last of them waits some seconds for the others. */
const MAX_WALKS = 64;

interface Walker {
  readonly isWanted: () => boolean;
  /** Does one turn; true when that was the last. */
  readonly walk: () => boolean;
  readonly giveUp: () => void;
}

/**
 * Who takes long stands in one line with the others: whenever the event loop has gone round, one turn of one of them is
 * done, so that any other request waits for one turn, however many walks there are. What nobody wants any more leaves the
 * line, so whoever asks and goes away keeps nobody out.
 */
export class Turns {
  readonly #most: number;
  #line: Walker[] = [];
  #isGoing = false;

  constructor(most = MAX_WALKS) {
    this.#most = most;
  }

  /** Fails with `registry/not-ready` where too many walks are under way, or when this one is not wanted any more. */
  async finish<T>(walk: Walk<T>, isWanted: () => boolean = () => true): Promise<T> {
    if (this.#line.length >= this.#most) this.#leaveUnwanted();
    if (this.#line.length >= this.#most) throw notReady('too many long searches are under way');
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const turn = (): boolean => {
      try {
        const found = walk();
        if (found === undefined) return false;
        resolve(found);
      } catch (error) {
        reject(error);
      }
      return true;
    };
    this.#line.push({
      isWanted,
      walk: turn,
      giveUp: () => reject(notReady('nobody waits for this search')),
    });
    if (!this.#isGoing) void this.#go();
    return promise;
  }

  async #go(): Promise<void> {
    this.#isGoing = true;
    while (this.#line.length > 0) {
      await setImmediate();
      this.#leaveUnwanted();
      const next = this.#line.shift();
      if (next?.walk() === false) this.#line.push(next);
    }
    this.#isGoing = false;
  }

  #leaveUnwanted(): void {
    this.#line = this.#line.filter((walker) => {
      const isWanted = walker.isWanted();
      if (!isWanted) walker.giveUp();
      return isWanted;
    });
  }
}

function notReady(message: string): SkepError {
  return new SkepError('registry/not-ready', { message });
}
