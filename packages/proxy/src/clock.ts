/** A pending callback. `restart` begins its delay anew, also after it ran, but not after `cancel`. */
export interface Timer {
  cancel(): void;
  restart(): void;
}

/** Time as an argument, so that tests decide when it passes. Milliseconds throughout. */
export interface Clock {
  now(): number;
  after(delayMs: number, run: () => void): Timer;
  every(periodMs: number, run: () => void): Timer;
}

/** Real time. Its timers do not keep the process alive: what is being served does. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, run) {
    let cancelled = false;
    const timer = setTimeout(run, delayMs).unref();
    return {
      cancel() {
        cancelled = true;
        clearTimeout(timer);
      },
      restart() {
        if (!cancelled) timer.refresh();
      },
    };
  },
  every(periodMs, run) {
    const timer = setInterval(run, periodMs).unref();
    return { cancel: () => clearInterval(timer), restart: () => void timer.refresh() };
  },
};
