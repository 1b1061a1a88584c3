import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '@skep/core/time/clock.ts';

const EVERY_MS = 5_000;
/** Shares of the time in which the event loop worked. */
const BUSY = 0.1;
const IDLE = 0.02;

export interface CollectOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The share of the time since it was last asked in which the event loop worked. */
  readonly load: () => number;
  /** Gives back all memory that is not in use; may take a tenth of a second. */
  readonly collect: () => void;
}

/**
 * Gives back what a burst of calls took, once it is over: V8 collects when something is allocated, so an idle process keeps
 * what it had at its busiest. Until the signal says so; never rejects.
 */
export async function collectWhenIdle({ clock, signal, load, collect }: CollectOptions): Promise<void> {
  let wasBusy = false;
  // The signal ends the wait.
  const passes = (): Promise<boolean> =>
    clock.sleep(EVERY_MS, signal).then(
      () => true,
      () => false,
    );
  while (await passes()) {
    const share = load();
    if (share > BUSY) wasBusy = true;
    else if (wasBusy && share < IDLE) {
      wasBusy = false;
      collect();
    }
  }
}

/** The load of this process; see `CollectOptions`. */
export function eventLoopLoad(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}

/**
 * Collects all garbage of this process. V8 hands its collector to contexts that are made while this flag is set; given at
 * the start, the flag would make Node compile everything of its own anew.
 */
export function collectAll(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as NodeJS.GCFunction;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', flavor: 'last-resort' });
}
