/** When a workload that ended by itself is started again. Durations in milliseconds. */
export const RESTART = {
  maxAttempts: 10,
  firstDelayMs: 5_000,
  longestDelayMs: 60_000,
  /** A run this long counts as healthy: attempts and delay begin anew. */
  stableAfterMs: 30_000,
} as const;

export interface RestartHistory {
  readonly attempts: number;
}

export const noRestarts: RestartHistory = { attempts: 0 };

export interface RestartPlan {
  readonly delayMs: number;
  readonly history: RestartHistory;
}

/** What to do after a run of `ranMs` ended; undefined when the attempts are used up. */
export function planRestart(history: RestartHistory, ranMs: number): RestartPlan | undefined {
  const attempts = ranMs >= RESTART.stableAfterMs ? 0 : history.attempts;
  if (attempts >= RESTART.maxAttempts) return undefined;
  const delayMs = Math.min(RESTART.firstDelayMs * 2 ** attempts, RESTART.longestDelayMs);
  return { delayMs, history: { attempts: attempts + 1 } };
}
