/** Longer values are neither written nor read. */
export const MAX_VALUE_CHARACTERS = 128 * 1024;

/**
 * Where replicas of a proxy keep what they all have to know of a session: short texts that end by themselves. Who can read or
 * write there is not trusted with what they say (`SharedSessions` seals it). All reject with `proxy/session-store-away` where
 * the store gives no answer. Passes `contract.ts`.
 */
export interface SessionStore {
  /** Cut off after one character more than a value may have; undefined where there is none. */
  get(key: string): Promise<string | undefined>;
  /** Writes `value` where what is there is exactly `expected` (undefined: nothing). True where it was. */
  replace(key: string, write: Replacement): Promise<boolean>;
  /** Gives what is there that much longer. False where nothing is. */
  extend(key: string, ttlMs: number): Promise<boolean>;
  /** Told each time that the store answers again after it did not. */
  onBack(told: () => void): void;
  /** Idempotent. */
  close(): void;
}

export interface Replacement {
  readonly expected: string | undefined;
  readonly value: string;
  readonly ttlMs: number;
}
