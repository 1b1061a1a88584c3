/** Share of the interval by which a wait is longer or shorter, so that sources of one interval drift apart. */
const JITTER = 0.1;
const LONGEST_BACK_OFF = 6 * 60 * 60_000;
const LONGEST_SYNC = 5 * 60_000;
/** An interval of a second does not mean that git has only a second. */
const SHORTEST_LIMIT = 10_000;

/**
 * Milliseconds until the next synchronisation of a source (docs/behaviour/registry.md#schedule): its interval, doubled with every
 * further failure in a row up to eight times but not beyond six hours, ±10 %. `random` is at least 0 and below 1.
 */
export function waitFor(interval: number, failures: number, random: number): number {
  const factor = 2 ** Math.min(Math.max(failures - 1, 0), 3);
  const backedOff = Math.max(interval, Math.min(interval * factor, LONGEST_BACK_OFF));
  return Math.round(backedOff * (1 - JITTER + 2 * JITTER * random));
}

/** Milliseconds that one synchronisation may take. */
export function syncLimit(interval: number | null): number {
  return Math.min(LONGEST_SYNC, Math.max(interval ?? LONGEST_SYNC, SHORTEST_LIMIT));
}
