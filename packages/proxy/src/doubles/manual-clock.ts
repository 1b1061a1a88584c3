import type { Clock, Timer } from '../clock.ts';

interface Due {
  at: number;
  readonly delayMs: number;
  readonly repeats: boolean;
  readonly run: () => void;
}

/** A clock that stands until it is told to go on. */
export interface ManualClock extends Clock {
  /** Runs everything that falls due within the next `milliseconds`, in order. */
  pass(milliseconds: number): void;
}

export function manualClock(start = Date.parse('2026-01-01T00:00:00Z')): ManualClock {
  let now = start;
  const due = new Set<Due>();
  const plan = (delayMs: number, run: () => void, repeats: boolean): Timer => {
    const entry: Due = { at: now + delayMs, delayMs, repeats, run };
    let cancelled = false;
    due.add(entry);
    return {
      cancel() {
        cancelled = true;
        due.delete(entry);
      },
      restart() {
        if (cancelled) return;
        entry.at = now + delayMs;
        due.add(entry);
      },
    };
  };
  return {
    now: () => now,
    after: (delayMs, run) => plan(delayMs, run, false),
    every: (periodMs, run) => plan(periodMs, run, true),
    pass(milliseconds) {
      const end = now + milliseconds;
      for (;;) {
        const next = [...due].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        now = next.at;
        if (next.repeats) next.at += next.delayMs;
        else due.delete(next);
        next.run();
      }
      now = end;
    },
  };
}
