import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Code } from '@skep/core/errors/codes.ts';
import type { Timer } from '@skep/core/time/clock.ts';
import { causeText } from '../token/outcome.ts';
import { tokenChallenge } from './challenge.ts';
import type {
  KeptClient,
  KeptSignIn,
  SignInServices,
  SignInState,
  SignInStore,
  ProvingTokenSource,
} from './port.ts';
import { keptProver, type ProvedRequest, type Prover } from './proof.ts';
import { parsedUrl } from './reach.ts';
import { isFresh, refresh, renewClient, type RefreshServices } from './refresh.ts';
import { isToRenew } from './register.ts';
import { union, wantedBy } from './scopes.ts';

/** How patiently a refresh is tried again, milliseconds. */
export interface RefreshPatience {
  /** Before the second try; doubles for each further one, up to `maxMs`. */
  readonly initialMs: number;
  readonly maxMs: number;
  /** After so long, or so many tries, the state is `auth_retrying`. */
  readonly maxElapsedMs: number;
  readonly maxTries: number;
  /** Between two tries in that state. */
  readonly tickMs: number;
  /** After so long in that state a person has to sign in again. */
  readonly maxRetryingMs: number;
}

export const REFRESH_PATIENCE: RefreshPatience = {
  initialMs: 10_000,
  maxMs: 120_000,
  maxElapsedMs: 300_000,
  maxTries: 5,
  tickMs: 600_000,
  maxRetryingMs: 86_400_000,
};

export interface TokenSourceServices extends RefreshServices, Pick<SignInServices, 'log'> {
  /** In [0, 1). */
  readonly random: () => number;
  readonly patience?: RefreshPatience | undefined;
  readonly onState?: ((state: SignInState) => void) | undefined;
}

/** Tokens of the sign-in that `store` keeps under `key`. Nothing is read before the first call. */
export function createTokenSource(
  key: string,
  store: SignInStore,
  services: TokenSourceServices,
): ProvingTokenSource {
  const source = new Source(key, store, services);
  return {
    token: () => source.token(),
    headersFor: (request) => source.headersFor(request),
    refused: (token, challenge, nonce) => source.refused(token, { challenge, nonce }),
    state: () => source.state,
    close: () => source.close(),
  };
}

/** What only a person, or whoever runs the authorization server, can mend. */
const PERMANENT: ReadonlySet<Code> = new Set([
  'auth/client-refused',
  'auth/sign-in-refused',
  'auth/sign-in-ended',
  'auth/not-signed-in',
]);
const RETRY_AFTER_S = 10;
/** A server that wants ever more does not fill the store. */
const MAX_WANTED = 100;
/** A token that is refused sooner after it was given is not refused because it is old. Doubles with each that is refused in a row. */
const TOO_NEW_MS = 10_000;
const MAX_TOO_NEW_MS = 600_000;
/** Between two looks at what is kept: somebody may have signed in anew, and as somebody else. */
const LOOK_MS = 10_000;

/** What the answer says that refused a token. */
interface Refusal {
  readonly challenge?: string | undefined;
  readonly nonce?: string | undefined;
}

/** Refreshes that failed for a while. */
interface Outage {
  readonly since: number;
  readonly tries: number;
  readonly nextAt: number;
  readonly error: SkepError;
}

class Source {
  readonly #key: string;
  readonly #store: SignInStore;
  readonly #services: TokenSourceServices;
  state: SignInState = 'running';
  #kept: KeptSignIn | undefined;
  #refreshing: Promise<KeptSignIn> | undefined;
  #outage: Outage | undefined;
  /** Why nothing but another sign-in helps. */
  #ended: SkepError | undefined;
  /** What a refresh gave that could not be stored; its old token may be worth nothing any more. */
  #unsaved: { readonly from: KeptSignIn; readonly to: KeptSignIn } | undefined;
  /** The same, of a registration that was renewed. */
  #unsavedClient: { readonly from: KeptClient; readonly to: KeptClient } | undefined;
  #timer: Timer | undefined;
  #prover: Prover | undefined;
  #lookedAt = 0;
  /** The token that came of a refusal, and how old it has to be for another one. */
  #afterRefusal: { readonly token: string; readonly tooNewMs: number } | undefined;
  #isClosed = false;

  constructor(key: string, store: SignInStore, services: TokenSourceServices) {
    this.#key = key;
    this.#store = store;
    this.#services = services;
  }

  async token(): Promise<string> {
    return tokenIn(await this.#good());
  }

  async headersFor(request: ProvedRequest): Promise<Record<string, string>> {
    const kept = await this.#good();
    const token = tokenIn(kept);
    const prover = await this.#proverOf(kept);
    return prover === undefined ? { authorization: `Bearer ${token}` } : prover.headersFor(token, request);
  }

  async refused(token: string, { challenge: header, nonce }: Refusal): Promise<string | undefined> {
    try {
      const kept = await this.#store.read(this.#key);
      if (kept === undefined) throw this.#end(new SkepError('auth/not-signed-in'));
      // Somebody refreshed, or signed in with more scopes, meanwhile.
      if (kept.accessToken !== token) return tokenIn(await this.#adopt(kept));
      const challenge = header === undefined ? undefined : await tokenChallenge(header);
      const wanted = wantedBy(challenge);
      if (wanted !== undefined) return await this.#want(wanted, kept);
      if (challenge?.error === 'use_dpop_nonce' && nonce !== undefined) {
        await (await this.#proverOf(kept))?.learn(nonce, parsedUrl(kept.resource));
        return token;
      }
      if (this.#ended !== undefined || this.#isWaiting()) return undefined;
      const tooNewMs = this.#afterRefusal?.token === token ? this.#afterRefusal.tooNewMs : TOO_NEW_MS;
      // One that has ended on its way is refused because it is old, however new it was.
      const isNew = this.#now() - (kept.obtainedAt ?? 0) < tooNewMs;
      if (isNew && isFresh(kept, this.#now())) return undefined;
      const next = tokenIn(await this.#refresh(kept));
      this.#afterRefusal = { token: next, tooNewMs: Math.min(MAX_TOO_NEW_MS, 2 * tooNewMs) };
      return next;
    } catch (error) {
      if (!(error instanceof SkepError)) throw error;
      this.#services.log.warn(
        { reason: error.message },
        'the server refused the token, and there is no other',
      );
      return undefined;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#refreshing?.catch(() => undefined);
  }

  async #good(): Promise<KeptSignIn> {
    const kept = await this.#current();
    const isGoodNow = isFresh(kept, this.#now()) && this.#ended === undefined;
    return isGoodNow ? kept : this.#renewed(kept);
  }

  /** As it was read a moment ago, at most; what cannot be read now is as it was. */
  async #current(): Promise<KeptSignIn> {
    const now = this.#now();
    const before = this.#kept;
    if (before !== undefined && Math.abs(now - this.#lookedAt) < LOOK_MS) return before;
    this.#lookedAt = now;
    if (before === undefined) return this.#read();
    const stored = await this.#store.read(this.#key).catch(() => before);
    if (stored === undefined) throw this.#end(new SkepError('auth/not-signed-in'));
    // Whoever else has refreshed it, or this here, meanwhile.
    if (this.#kept !== before || stored.accessToken === before.accessToken) return this.#kept ?? before;
    this.#recover(stored);
    return stored;
  }

  /** Remembered, because it knows the nonces of the resource. */
  async #proverOf({ proofKey, client }: KeptSignIn): Promise<Prover | undefined> {
    if (proofKey === undefined) return undefined;
    if (this.#prover?.key !== proofKey) this.#prover = await keptProver(proofKey, client);
    return this.#prover;
  }

  #now(): number {
    return this.#services.clock.now();
  }

  async #read(): Promise<KeptSignIn> {
    const stored = await this.#store.read(this.#key);
    if (stored === undefined) {
      this.#enter('unauthenticated');
      throw new SkepError('auth/not-signed-in');
    }
    return (this.#kept ??= stored);
  }

  /** The scopes are asked for when a person signs in the next time. */
  async #want(scopes: readonly string[], { wanted, accessToken }: KeptSignIn): Promise<undefined> {
    if (wanted !== undefined && scopes.every((one) => wanted.includes(one))) return;
    await this.#store.change(this.#key, async (stored) => {
      // Somebody may have signed in meanwhile, with more.
      if (stored?.accessToken !== accessToken) return stored;
      return stored && { ...stored, wanted: union(stored.wanted ?? [], scopes).slice(0, MAX_WANTED) };
    });
  }

  /** A sign-in with a good token, refreshed or found in the store. While refreshing fails, the old token serves until it ends. */
  async #renewed(seen: KeptSignIn): Promise<KeptSignIn> {
    if (this.#ended !== undefined || this.#isWaiting()) {
      const stored = await this.#store.read(this.#key);
      if (stored !== undefined && stored.accessToken !== seen.accessToken) return this.#adopt(stored);
      if (this.#ended !== undefined) throw this.#ended;
      if (isGood(seen, this.#now())) return seen;
      throw this.#unavailable();
    }
    try {
      return await this.#refresh(seen);
    } catch (error) {
      if (this.#ended === undefined && isGood(seen, this.#now())) return seen;
      throw error;
    }
  }

  #isWaiting(): boolean {
    return this.#refreshing === undefined && this.#outage !== undefined && this.#now() < this.#outage.nextAt;
  }

  /** Somebody else refreshed, or signed in again. */
  async #adopt(stored: KeptSignIn): Promise<KeptSignIn> {
    this.#recover(stored);
    return isFresh(stored, this.#now()) ? stored : this.#renewed(stored);
  }

  /** One at a time, for all that ask; none once it is closed, for nobody would wait until what it gets is kept. */
  #refresh(seen: KeptSignIn): Promise<KeptSignIn> {
    if (this.#isClosed && this.#refreshing === undefined) return Promise.reject(this.#unavailable());
    this.#refreshing ??= this.#refreshOnce(seen).finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  async #refreshOnce(seen: KeptSignIn): Promise<KeptSignIn> {
    let { client } = seen;
    try {
      // On its own, so that the new secret is kept before it is used.
      if (isToRenew(seen.client, this.#now()))
        await this.#store.change(this.#key, (stored) => this.#withRenewedClient(stored));
      this.#unsavedClient = undefined;
      const kept = await this.#store.change(this.#key, (stored) => {
        client = stored?.client ?? client;
        return this.#next(stored, seen);
      });
      if (kept === undefined) throw new SkepError('auth/not-signed-in');
      this.#unsaved = undefined;
      this.#recover(kept);
      return kept;
    } catch (error) {
      if (hasCode(error, 'auth/client-refused')) await this.#forgetClient(client);
      throw this.#failed(error);
    }
  }

  /** The next sign-in registers anew; the same client would lead a person to a page from which nobody comes back. */
  async #forgetClient(client: KeptClient): Promise<void> {
    // Whoever else renewed it meanwhile has another secret, which is good.
    const forget = (stored: KeptSignIn | undefined): KeptSignIn | undefined =>
      stored?.client.id === client.id && stored.client.secret === client.secret
        ? { ...stored, client: { ...client, registered: undefined } }
        : stored;
    try {
      await this.#store.change(this.#key, (stored) => Promise.resolve(forget(stored)));
    } catch (error) {
      this.#services.log.warn({ reason: causeText(error) }, 'a client that is refused stays registered here');
    }
  }

  /** Runs alone among all that share the store. Where the registration cannot be renewed, its old secret serves until it ends. */
  async #withRenewedClient(stored: KeptSignIn | undefined): Promise<KeptSignIn | undefined> {
    if (stored === undefined || !isToRenew(stored.client, this.#now())) return stored;
    const from = stored.client;
    const last = this.#unsavedClient;
    const isUnsaved = last?.from.id === from.id && last.from.secret === from.secret;
    if (last !== undefined && isUnsaved) return { ...stored, client: last.to };
    try {
      const to = await renewClient(stored, this.#services);
      this.#unsavedClient = { from, to };
      return { ...stored, client: to };
    } catch (error) {
      const hasEnded = (from.registered?.secretExpiresAt ?? Infinity) <= this.#now();
      if (hasEnded && !(error instanceof SkepError && PERMANENT.has(error.code))) throw error;
      this.#services.log.warn(
        { reason: causeText(error) },
        'the registration of the client could not be renewed',
      );
      return stored;
    }
  }

  /** Runs alone among all that share the store: what they have refreshed meanwhile is good for us too. */
  async #next(stored: KeptSignIn | undefined, seen: KeptSignIn): Promise<KeptSignIn> {
    if (stored === undefined) throw new SkepError('auth/not-signed-in');
    if (stored.accessToken !== seen.accessToken && isFresh(stored, this.#now())) return stored;
    const last = this.#unsaved;
    const isUnsaved = last?.from.accessToken === stored.accessToken;
    // What renewed the client since then was kept.
    const unsaved = isUnsaved && last !== undefined ? { ...last.to, client: stored.client } : undefined;
    if (unsaved !== undefined && isFresh(unsaved, this.#now())) return unsaved;
    const to = await refresh(unsaved ?? stored, this.#services);
    this.#unsaved = { from: stored, to };
    return to;
  }

  #recover(kept: KeptSignIn): void {
    this.#kept = kept;
    this.#outage = undefined;
    this.#ended = undefined;
    this.#timer?.cancel();
    this.#enter('running');
  }

  /** Decides whether and when it is tried again; the error for whoever waits. */
  #failed(error: unknown): SkepError {
    const failure = error instanceof SkepError ? error : new SkepError('internal/bug', { cause: error });
    this.#services.log.warn(
      { reason: causeText(failure), code: failure.code },
      'the sign-in could not be refreshed',
    );
    if (PERMANENT.has(failure.code)) return this.#end(failure);
    const { patience = REFRESH_PATIENCE, random, clock } = this.#services;
    const now = this.#now();
    const { since, tries } = this.#outage ?? { since: now, tries: 0 };
    const isLong = tries + 1 >= patience.maxTries || now - since >= patience.maxElapsedMs;
    if (isLong && now - since >= patience.maxRetryingMs) return this.#end(failure);
    const backOff = Math.min(patience.maxMs, patience.initialMs * 2 ** tries);
    const delay = (isLong ? patience.tickMs : backOff) * (0.9 + random() / 5);
    this.#outage = { since, tries: tries + 1, nextAt: now + delay, error: failure };
    this.#timer?.cancel();
    if (!this.#isClosed) this.#timer = clock.after(delay, () => this.#again());
    if (isLong) this.#enter('auth_retrying');
    return this.#unavailable();
  }

  #again(): void {
    if (this.#kept === undefined || this.#isClosed) return;
    // It has logged why it fails, and when it is tried again.
    this.#refresh(this.#kept).catch(() => undefined);
  }

  #end(failure: SkepError): SkepError {
    this.#outage = undefined;
    this.#timer?.cancel();
    const code = failure.code === 'auth/not-signed-in' ? failure.code : 'auth/sign-in-ended';
    this.#ended = new SkepError(code, { message: failure.message, detail: failure.detail });
    this.#enter('unauthenticated');
    return this.#ended;
  }

  #unavailable(): SkepError {
    const message = this.#outage?.error.message;
    const detail = { retryAfterSeconds: RETRY_AFTER_S };
    return new SkepError('auth/unavailable', { message, detail, cause: this.#outage?.error });
  }

  #enter(state: SignInState): void {
    if (this.state === state) return;
    this.state = state;
    this.#services.onState?.(state);
  }
}

/** Whether the resource would still take its token. */
function isGood({ accessToken, expiresAt = 0 }: KeptSignIn, now: number): boolean {
  return accessToken !== undefined && now < expiresAt;
}

function tokenIn({ accessToken }: KeptSignIn): string {
  if (accessToken === undefined) throw new SkepError('auth/bad-answer');
  return accessToken;
}
