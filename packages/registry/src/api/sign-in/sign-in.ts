import { describeRefusal, bearerChallenge, type Refusal } from '@skep/auth/resource/authenticate.ts';
import { metadataUrl } from '@skep/auth/resource/metadata.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Identity } from '@skep/auth/token/identity.ts';
import { TokenCache } from '@skep/auth/token/cache.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { IssuerFetch } from '@skep/auth/token/issuer-fetch.ts';
import { createProvider } from '@skep/auth/token/provider.ts';
import { createVerifier, type TokenVerifier } from '@skep/auth/token/verifier.ts';
import type { SignInMode, Authority } from '../../access/authority.ts';
import { rememberedAuthority } from '../../access/authority.ts';
import type { AuthConfig, Login, ProtectedResource } from '../../config/auth.ts';

/** How the public listener tells callers apart. A reload replaces it as a whole. */
export type SignIn = OpenSignIn | BearerSignIn;

/** `auth.mode: anonymous`: nobody is asked, and an `Authorization` header is not even read. */
export interface OpenSignIn {
  readonly kind: 'open';
  readonly close: () => void;
}

/** `auth.mode: oauth`. */
export interface BearerSignIn {
  readonly kind: 'bearer';
  readonly mode: SignInMode;
  readonly verifier: TokenVerifier;
  readonly authorityOf: (identity: Identity) => Authority;
  /** `WWW-Authenticate` of a refusal. */
  readonly challenge: (refusal: Refusal) => string;
  /** Paths that need no token, see `isPublicPath`. */
  readonly publicPaths: readonly string[];
  readonly resource: ProtectedResource;
  readonly issuers: readonly string[];
  readonly logins: readonly Login[];
  /** Idempotent. */
  readonly close: () => void;
}

export const OPEN_SIGN_IN: OpenSignIn = { kind: 'open', close: () => undefined };

export interface SignInServices {
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  /** Replaces requests to identity providers; tests only. */
  readonly fetch?: IssuerFetch;
}

/**
 * Makes what a configuration describes. Identity providers are not asked yet, so the registry starts while one is away.
 * Fails with `auth/invalid-provider`, `fetch/ca-bundle` or `file/*` for a file that a provider names.
 */
export async function openSignIn(auth: AuthConfig, services: SignInServices): Promise<SignIn> {
  if (auth.mode === 'anonymous') return OPEN_SIGN_IN;
  const providers = await Promise.all(auth.providers.map((settings) => createProvider(settings, services)));
  const verifier = createVerifier(providers, new TokenCache({ now: services.clock.now }));
  return {
    kind: 'bearer',
    mode: auth.access,
    verifier,
    authorityOf: rememberedAuthority(auth.access),
    challenge: challengeFor(auth.resource),
    publicPaths: auth.publicPaths,
    resource: auth.resource,
    issuers: auth.providers.map(({ issuerUrl }) => issuerUrl),
    logins: auth.logins,
    close: () => verifier.close(),
  };
}

function challengeFor({ url, realm }: ProtectedResource): BearerSignIn['challenge'] {
  const resourceMetadata = url === undefined ? undefined : metadataUrl(url);
  return (refusal) =>
    bearerChallenge({
      realm,
      error: refusal.error,
      description: describeRefusal(refusal, 'terse'),
      resourceMetadata,
    });
}

/** Longer than any request may wait for an identity provider. */
const GRACE_MS = 30_000;

/** How callers are told apart now. What is replaced stays open for a while, for the requests that wait for its answer. */
export class SignInSlot {
  readonly #clock: Clock;
  readonly #former = new Set<() => void>();
  #current: SignIn;
  #away: readonly string[] = [];

  constructor(first: SignIn, clock: Clock) {
    this.#current = first;
    this.#clock = clock;
  }

  get current(): SignIn {
    return this.#current;
  }

  /** Asks every identity provider for its keys; what cannot be had is logged. */
  askProviders(): void {
    const asked = this.#current;
    if (asked.kind === 'open') return;
    void asked.verifier.ready().then((away) => {
      if (this.#current === asked) this.#away = away;
    });
  }

  /** Names of the identity providers that did not answer when they were asked; asks once more. */
  away(): readonly string[] {
    if (this.#away.length > 0) this.askProviders();
    return this.#away;
  }

  replace(next: SignIn): void {
    this.#away = [];
    const before = this.#current;
    this.#current = next;
    const end = (): void => {
      cancel();
      this.#former.delete(end);
      before.close();
    };
    const { cancel } = this.#clock.after(GRACE_MS, end);
    this.#former.add(end);
  }

  /** Idempotent. */
  close(): void {
    for (const end of this.#former) end();
    this.#current.close();
  }
}
