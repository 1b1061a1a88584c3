import type { Sleep } from '../time/clock.ts';

export interface RetryOptions {
  /** All attempts, the first one included. */
  readonly tries: number;
  /** Delay before the second try in milliseconds; doubles for each further one. */
  readonly baseMs: number;
  /** No single delay is longer; a server that asks for more ends the retries. */
  readonly capMs: number;
  /** In [0, 1). */
  readonly random: () => number;
  readonly sleep: Sleep;
  readonly signal?: AbortSignal;
}

/** Try again, after at least `afterMs` if the server said so, or not. */
export type Verdict = { readonly retry: false } | { readonly retry: true; readonly afterMs?: number };

export const defaultRetry = { tries: 3, baseMs: 200, capMs: 10_000 } as const;

/** Runs `action` until it succeeds or fails for good; then fails with the last error. */
export async function withRetry<T>(
  action: () => Promise<T>,
  judge: (error: unknown) => Verdict,
  options: RetryOptions,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await action();
    } catch (error) {
      const verdict = judge(error);
      if (!verdict.retry || attempt >= options.tries || options.signal?.aborted === true) throw error;
      if ((verdict.afterMs ?? 0) > options.capMs) throw error;
      await options.sleep(delayOf(attempt, verdict.afterMs ?? 0, options), options.signal);
    }
  }
}

/** Half random, so that many clients do not return together; never sooner than asked. */
function delayOf(attempt: number, afterMs: number, options: RetryOptions): number {
  const backOff = Math.min(options.capMs, options.baseMs * 2 ** (attempt - 1));
  return Math.max(afterMs, backOff / 2 + (options.random() * backOff) / 2);
}

/** Milliseconds of a Retry-After header (RFC 9110 §10.2.3); undefined when absent or unusable. */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/u.test(header)) return Number(header) * 1_000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
