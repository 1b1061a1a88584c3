import { setTimeout as delay } from 'node:timers/promises';

/** A pending callback. `restart` begins its delay anew, also after it ran, but not after `cancel`. */
export interface Timer {
  readonly cancel: () => void;
  readonly restart: () => void;
}

/** Time as an argument, so that tests decide when it passes. Milliseconds throughout. */
export interface Clock {
  /** Since the epoch. */
  readonly now: () => number;
  /** Since some moment, for durations: setting the machine's clock does not change it, and it stands while the machine sleeps. */
  readonly elapsed: () => number;
  readonly after: (delayMs: number, run: () => void) => Timer;
  readonly every: (periodMs: number, run: () => void) => Timer;
  /** Of 24 days at most. Fails with the reason of the signal when that aborts. */
  readonly sleep: Sleep;
}

export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

/** setTimeout fires at once beyond this: 24 days. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Real time. Its timers do not keep the process alive; a sleep does, for somebody waits. */
export const systemClock: Clock = {
  now: Date.now,
  elapsed: () => performance.now(),
  after(delayMs, run) {
    let cancelled = false;
    const timer = setTimeout(run, Math.min(delayMs, MAX_TIMER_MS)).unref();
    return {
      cancel: () => {
        cancelled = true;
        clearTimeout(timer);
      },
      restart: () => {
        if (!cancelled) timer.refresh();
      },
    };
  },
  every(periodMs, run) {
    const timer = setInterval(run, periodMs).unref();
    return { cancel: () => clearInterval(timer), restart: () => void timer.refresh() };
  },
  async sleep(ms, signal) {
    try {
      await delay(Math.min(ms, MAX_TIMER_MS), undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};

/** RFC 3339 in UTC, with milliseconds. */
export function utcTime({ now }: Pick<Clock, 'now'>): string {
  return new Date(now()).toISOString();
}
