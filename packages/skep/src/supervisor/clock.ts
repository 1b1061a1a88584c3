import { setTimeout as delay } from 'node:timers/promises';

/** Time as the supervisor sees it; tests pass one they move by hand. */
export interface Clock {
  now(): Date;
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => new Date(),
  // Timers alone never keep the supervisor alive: what it hosts and its socket do.
  sleep: (ms, signal) => delay(ms, undefined, { signal }),
};
