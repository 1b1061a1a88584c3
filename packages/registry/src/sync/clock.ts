/** Time as an argument, so that tests decide when it passes. */
export interface Clock {
  /** RFC 3339 UTC. */
  now(): string;
  /** Calls back once after so many milliseconds, unless the returned function is called before. */
  after(milliseconds: number, callback: () => void): () => void;
}

// setTimeout fires at once beyond this.
const LONGEST_TIMER = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => new Date().toISOString(),
  after: (milliseconds, callback) => {
    const timer = setTimeout(callback, Math.min(milliseconds, LONGEST_TIMER));
    // A waiting synchronisation is no reason to keep the process alive.
    timer.unref();
    return () => clearTimeout(timer);
  },
};
