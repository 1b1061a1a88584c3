import {
  createLocalJWKSet,
  errors,
  type CryptoKey,
  type JSONWebKeySet,
  type JWTHeaderParameters,
} from 'jose';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { causeText } from './outcome.ts';
import type { IssuerFetch } from './issuer-fetch.ts';

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
  /** How long keys serve that were read once and cannot be asked for again. */
  readonly outageMs: number;
}

interface Keys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
  /** From here on they are asked for while they serve. */
  readonly refreshAt: number;
  /** From here on nobody is let in before they were asked for. */
  readonly staleAt: number;
  /** From here on they do not serve, whether or not the provider answers. */
  readonly endAt: number;
}

const MINUTE = 60_000;
const MIN_AGE = MINUTE;
/** Below the next one, so that asking delays nobody as long as there are requests. */
const REFRESH_AGE = 12 * MINUTE;
/** A key that the provider does not list any more works at most so long. */
const MAX_AGE = 15 * MINUTE;
export const KEYS_OUTAGE_MS = 60 * MINUTE;
/** A failed background refresh is tried again after this time, not with the next request. */
const RETRY_EVERY = 30_000;
/** Everything a waiting request waits for, retries included; below any sensible request timeout. */
const LOAD_BUDGET = 8_000;

/**
 * The signing keys of one identity provider (RFC 7517). Loaded at first use and asked for again at least every 15 minutes,
 * whatever the provider says about their age, because a withdrawn key is one that somebody else may have. While the
 * provider does not answer, known keys serve on for the time of an outage. A token with an unknown key id causes one load,
 * rate-limited, so that a rotated key works at once and made-up ids cannot flood the provider.
 */
export class KeySet {
  readonly #options: KeySetOptions;
  readonly #closed = new AbortController();
  #keys: Keys | undefined;
  #loading: Promise<Keys> | undefined;
  #triedAt = -Infinity;
  #forcedAt = -Infinity;

  constructor(options: KeySetOptions) {
    this.#options = options;
  }

  /** Asks for the keys unless they are known. False where they cannot be had; `#load` has logged why. */
  ready(): Promise<boolean> {
    return this.#current().then(
      () => true,
      () => false,
    );
  }

  /** The key for a token header. Fails with a JOSE error where there is none, `auth/unavailable` where keys cannot be had. */
  async find(header: JWTHeaderParameters): Promise<CryptoKey> {
    const keys = await this.#current();
    try {
      return await keys.find(header);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      const newer = await this.#afterUnknownKey(keys);
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
    if (now < keys.refreshAt) return keys;
    const isOver = now >= keys.endAt;
    if (now < this.#triedAt + RETRY_EVERY && this.#loading === undefined) {
      if (isOver) throw unavailable(this.#triedAt + RETRY_EVERY - now);
      return keys;
    }
    // Known keys go on working when the provider is away; `#load` has logged it.
    const refreshed = isOver ? this.#load() : this.#load().catch(() => keys);
    return now < keys.staleAt ? keys : refreshed;
  }

  /**
   * Keys that were asked for after the seen ones. Fails with `auth/unavailable` when the provider was asked a moment ago: a
   * key that was made since would be refused, and its callers would sign in again for nothing.
   */
  async #afterUnknownKey(seen: Keys): Promise<Keys> {
    if (this.#keys !== undefined && this.#keys !== seen) return this.#keys;
    if (this.#loading) return this.#loading;
    const now = this.#options.clock.now();
    if (now >= this.#forcedAt + this.#options.forcedEveryMs) {
      this.#forcedAt = now;
      return this.#load();
    }
    throw unavailable(this.#forcedAt + this.#options.forcedEveryMs - now);
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
      const age = Math.min(Math.max(maxAgeMs ?? REFRESH_AGE, MIN_AGE), REFRESH_AGE);
      const now = clock.now();
      this.#keys = {
        find: createLocalJWKSet(jwks),
        refreshAt: now + age,
        staleAt: now + MAX_AGE,
        endAt: now + Math.max(this.#options.outageMs, MAX_AGE),
      };
      return this.#keys;
    } catch (cause) {
      const facts = { reason: causeText(cause), kept: this.#keys !== undefined };
      log.warn(facts, 'cannot load the keys of an identity provider');
      throw new SkepError('auth/unavailable', { cause });
    }
  }
}

function unavailable(forMs: number): SkepError {
  return new SkepError('auth/unavailable', {
    detail: { retryAfterSeconds: Math.max(1, Math.ceil(forMs / 1000)) },
  });
}

/** Reads a JWK Set document (RFC 7517 §5). Fails with `fetch/bad-status`, `fetch/not-json` or a failure of `fetch`. */
export async function fetchKeys(
  fetch: IssuerFetch['fetch'],
  url: string,
  signal: AbortSignal,
): Promise<LoadedKeys> {
  const headers = { accept: 'application/jwk-set+json, application/json' };
  const response = await fetch(url, { headers, signal });
  if (response.status !== 200) {
    throw new SkepError('fetch/bad-status', { message: `"${url}" answered with status ${response.status}` });
  }
  const jwks = parsedJson(await response.text());
  if (!isKeySet(jwks))
    throw new SkepError('fetch/not-json', { message: `"${url}" did not answer with a key set` });
  return { jwks, maxAgeMs: maxAge(response.headers.get('cache-control')) };
}

function isKeySet(value: unknown): value is JSONWebKeySet {
  const keys = isRecord(value) ? value['keys'] : undefined;
  return Array.isArray(keys) && keys.every((key) => typeof key === 'object' && key !== null);
}

/** Milliseconds of `max-age` (RFC 9111 §5.2.2.1). */
function maxAge(header: string | null): number | undefined {
  const seconds = /(?:^|[\s,])max-age=(\d{1,9})/iu.exec(header ?? '')?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}
