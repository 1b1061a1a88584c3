import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { TokenOutcome } from './outcome.ts';

interface Cached {
  readonly outcome: TokenOutcome;
  readonly until: number;
}

export interface TokenCacheOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** A withdrawn key or token works at most this long after it was seen. */
  readonly capMs?: number;
  /** Characters of all cached tokens together: claims take about as much memory as the token they came in. */
  readonly maxCharacters?: number;
}

/** A refusal is remembered for so long, that a client which repeats itself costs its identity provider one question. */
const REFUSED_MS = 5_000;
const MOST_REFUSED = 10_000;

/**
 * What checking tokens ended in, by SHA-256: no token is kept. One that was accepted is forgotten when it
 * expires or the cap passes. Refusals are remembered apart, a few seconds and so many at most, and can only
 * ever refuse; an outage is not. The same token gives the same `identity` object while it is cached, so that
 * others may hang their own answers on it.
 */
export class TokenCache {
  readonly #now: () => number;
  readonly #capMs: number;
  readonly #accepted: LRUCache<string, Cached>;
  readonly #refused = new LRUCache<string, Cached>({ max: MOST_REFUSED });

  constructor({ now, capMs = 60_000, maxCharacters = 16 * 1024 * 1024 }: TokenCacheOptions) {
    this.#now = now;
    this.#capMs = capMs;
    this.#accepted = new LRUCache({ max: 50_000, maxSize: maxCharacters });
  }

  get(token: string): TokenOutcome | undefined {
    const key = hash('sha256', token, 'base64');
    return this.#valid(this.#accepted, key) ?? this.#valid(this.#refused, key);
  }

  set(token: string, outcome: TokenOutcome): void {
    const key = hash('sha256', token, 'base64');
    const now = this.#now();
    if (outcome.kind === 'identity') {
      const until = Math.min(outcome.expiresAt, now + this.#capMs);
      this.#accepted.set(key, { outcome, until }, { size: token.length });
    } else if (outcome.kind === 'invalid') {
      this.#refused.set(key, { outcome, until: now + REFUSED_MS });
    }
  }

  clear(): void {
    this.#refused.clear();
    this.#accepted.clear();
  }

  #valid(cached: LRUCache<string, Cached>, key: string): TokenOutcome | undefined {
    const entry = cached.get(key);
    if (entry === undefined || this.#now() < entry.until) return entry?.outcome;
    cached.delete(key);
    return undefined;
  }
}
