import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { TokenOutcome } from './outcome.ts';

type Accepted = Extract<TokenOutcome, { kind: 'identity' }>;
type Refused = Extract<TokenOutcome, { kind: 'invalid' }>;

export interface TokenCacheOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** A withdrawn key or token works at most this long after it was seen; see `TOKEN_CACHE_CAP_MS`. */
  readonly capMs: number;
  /** Characters of all cached tokens together: claims take about as much memory as the token they came in. */
  readonly maxCharacters: number;
}

export const TOKEN_CACHE_CAP_MS = 60_000;
export const TOKEN_CACHE_CHARACTERS = 16 * 1024 * 1024;

/** A refusal is remembered for so long, that a client which repeats itself costs its identity provider one question. */
const REFUSED_MS = 5_000;
const MOST_REFUSED = 10_000;

/**
 * Tokens that were accepted, by SHA-256: no token is kept. They are forgotten when they expire or the cap passes.
 * Refusals are remembered apart, a few seconds and so many at most, and can only ever refuse.
 * The same token gives the same `identity` object while it is cached, so that others may hang their own answers on it.
 */
export class TokenCache {
  readonly #options: TokenCacheOptions;
  readonly #entries: LRUCache<string, { readonly outcome: Accepted; readonly until: number }>;

  readonly #refused = new LRUCache<string, { readonly outcome: Refused; readonly until: number }>({
    max: MOST_REFUSED,
  });

  constructor(options: TokenCacheOptions) {
    this.#options = options;
    this.#entries = new LRUCache({ max: 50_000, maxSize: options.maxCharacters });
  }

  get(token: string): Accepted | undefined {
    const key = keyOf(token);
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (this.#options.now() < entry.until) return entry.outcome;
    this.#entries.delete(key);
    return undefined;
  }

  set(token: string, outcome: Accepted): void {
    const until = Math.min(outcome.expiresAt, this.#options.now() + this.#options.capMs);
    this.#entries.set(keyOf(token), { outcome, until }, { size: token.length });
  }

  /** Why the token was refused a moment ago. */
  refused(token: string): Refused | undefined {
    const entry = this.#refused.get(keyOf(token));
    return entry !== undefined && this.#options.now() < entry.until ? entry.outcome : undefined;
  }

  refuse(token: string, outcome: Refused): void {
    this.#refused.set(keyOf(token), { outcome, until: this.#options.now() + REFUSED_MS });
  }

  clear(): void {
    this.#refused.clear();
    this.#entries.clear();
  }
}

function keyOf(token: string): string {
  return hash('sha256', token, 'base64');
}
