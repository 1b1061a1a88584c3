import {
  createLocalJWKSet,
  errors,
  type CryptoKey,
  type JSONWebKeySet,
  type JWTHeaderParameters,
} from 'jose';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import { causeText } from './cause-text.ts';
import type { Clock } from './clock.ts';

export interface LoadedKeys {
  readonly jwks: JSONWebKeySet;
  /** How long the provider says the answer stays good; undefined where it says nothing. */
  readonly maxAgeMs?: number | undefined;
}

export interface KeySetOptions {
  readonly load: (signal: AbortSignal) => Promise<LoadedKeys>;
  readonly clock: Clock;
  readonly log: Log;
  /** Least time between two loads that an unknown key id may cause. */
  readonly forcedEveryMs: number;
}

interface Keys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
  readonly refreshAt: number;
  readonly staleAt: number;
}

const MINUTE = 60_000;
const MIN_AGE = 15 * MINUTE;
const DEFAULT_AGE = 60 * MINUTE;
const MAX_AGE = 24 * 60 * MINUTE;
/** A failed background refresh is tried again after this time, not with the next request. */
const RETRY_EVERY = 30_000;
/** Everything a waiting request waits for, retries included; below any sensible request timeout. */
const LOAD_BUDGET = 8_000;

/**
 * The signing keys of one identity provider (RFC 7517). Loaded at first use, refreshed in the background, kept when a
 * refresh fails. A token with an unknown key id causes one load, rate-limited, so that a rotated key works at once and
 * made-up ids cannot flood the provider.
 */
export class KeySet {
  readonly #options: KeySetOptions;
  readonly #closed = new AbortController();
  #keys: Keys | undefined;
  #loading: Promise<Keys> | undefined;
  #failed = false;
  #triedAt = -Infinity;
  #forcedAt = -Infinity;

  constructor(options: KeySetOptions) {
    this.#options = options;
  }

  /** The key for a token header. Fails with a JOSE error where there is none, `auth/unavailable` where keys cannot be had. */
  async find(header: JWTHeaderParameters): Promise<CryptoKey> {
    const keys = await this.#current();
    try {
      return await keys.find(header);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      const newer = await this.#afterUnknownKey(keys);
      if (newer === undefined) throw error;
      return newer.find(header);
    }
  }

  close(): void {
    this.#closed.abort();
  }

  async #current(): Promise<Keys> {
    const keys = this.#keys;
    if (keys === undefined) return this.#load();
    const now = this.#options.clock.now();
    if (now < keys.refreshAt || now < this.#triedAt + RETRY_EVERY) return keys;
    // Old keys go on working when the provider is away; `#load` has logged it.
    const refreshed = this.#load().catch(() => keys);
    return now < keys.staleAt ? keys : refreshed;
  }

  /** Newer keys, or undefined when the provider was asked just now and does not know the key id. */
  async #afterUnknownKey(seen: Keys): Promise<Keys | undefined> {
    if (this.#keys !== seen) return this.#keys;
    if (this.#loading) return this.#loading;
    const now = this.#options.clock.now();
    if (now >= this.#forcedAt + this.#options.forcedEveryMs) {
      this.#forcedAt = now;
      return this.#load();
    }
    if (this.#failed) throw new SkepError('auth/unavailable');
    return undefined;
  }

  /** All callers share one load. */
  #load(): Promise<Keys> {
    this.#loading ??= this.#loadOnce().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #loadOnce(): Promise<Keys> {
    const { clock, load, log } = this.#options;
    this.#triedAt = clock.now();
    try {
      const signal = AbortSignal.any([this.#closed.signal, AbortSignal.timeout(LOAD_BUDGET)]);
      const { jwks, maxAgeMs } = await load(signal);
      const age = Math.min(Math.max(maxAgeMs ?? DEFAULT_AGE, MIN_AGE), MAX_AGE);
      const now = clock.now();
      this.#keys = { find: createLocalJWKSet(jwks), refreshAt: now + age, staleAt: now + 2 * age };
      this.#failed = false;
      return this.#keys;
    } catch (cause) {
      this.#failed = true;
      const facts = { reason: causeText(cause), kept: this.#keys !== undefined };
      log.warn(facts, 'cannot load the keys of an identity provider');
      throw new SkepError('auth/unavailable', { cause });
    }
  }
}
