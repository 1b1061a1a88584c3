import { sleep, type Sleep } from '@skep/core/fetch/retry.ts';

/** Time and chance as token checks need them. */
export interface Clock {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly sleep: Sleep;
  /** In [0, 1). */
  readonly random: () => number;
}

export const systemClock: Clock = { now: Date.now, sleep, random: Math.random };
