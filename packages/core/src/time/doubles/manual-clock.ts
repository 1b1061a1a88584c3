import type { Clock, Timer } from '../clock.ts';

interface Due {
  at: number;
  readonly delayMs: number;
  readonly repeats: boolean;
  readonly run: () => void;
}

/** A clock that stands until it is told to go on. Sleeping takes none of its time, and is recorded. */
export interface ManualClock extends Clock {
  /** Sets the machine's clock forward, or back; no time passes. */
  readonly set: (milliseconds: number) => void;
  /** Runs everything that falls due within the next `milliseconds`, in order. */
  readonly pass: (milliseconds: number) => void;
  /** Milliseconds until the next timer; undefined when none waits. */
  readonly nextIn: number | undefined;
  /** How many timers wait. */
  readonly waiting: number;
  /** Milliseconds of each sleep. */
  readonly slept: readonly number[];
}

export function manualClock(start = Date.parse('2026-01-01T00:00:00Z')): ManualClock {
  let now = start;
  let setBy = 0;
  const due = new Set<Due>();
  const slept: number[] = [];
  const next = (): Due | undefined => [...due].toSorted((a, b) => a.at - b.at)[0];
  const plan = (delayMs: number, run: () => void, repeats: boolean): Timer => {
    const entry: Due = { at: now + delayMs, delayMs, repeats, run };
    let cancelled = false;
    due.add(entry);
    return {
      cancel: () => {
        cancelled = true;
        due.delete(entry);
      },
      restart: () => {
        if (cancelled) return;
        entry.at = now + delayMs;
        due.add(entry);
      },
    };
  };
  return {
    now: () => now + setBy,
    elapsed: () => now,
    after: (delayMs, run) => plan(delayMs, run, false),
    every: (periodMs, run) => plan(periodMs, run, true),
    sleep: async (ms) => void slept.push(ms),
    slept,
    set: (milliseconds) => void (setBy += milliseconds),
    pass: (milliseconds) => {
      const end = now + milliseconds;
      for (let entry = next(); entry !== undefined && entry.at <= end; entry = next()) {
        now = Math.max(now, entry.at);
        if (entry.repeats) entry.at += entry.delayMs;
        else due.delete(entry);
        entry.run();
      }
      now = end;
    },
    get nextIn() {
      const entry = next();
      return entry === undefined ? undefined : entry.at - now;
    },
    get waiting() {
      return due.size;
    },
  };
}
