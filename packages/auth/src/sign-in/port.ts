import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { SignInFetch } from './sign-in-fetch.ts';

/** One thing that somebody signs in to: a remote MCP server or a registry. What the operator gave; the rest is discovered. */
export interface SignInTarget {
  /** Its URL. */
  readonly resource: string;
  readonly issuer?: string | undefined;
  /** Together instead of `issuer`, where a server has no metadata. */
  readonly authorizeUrl?: string | undefined;
  readonly tokenUrl?: string | undefined;
  /** It may be the address of a document about the client, for ways with a person. */
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /** A private key of the client, with which it proves who it is (RFC 7523 §2.2). */
  readonly clientKey?: ClientKey | undefined;
  /** Where a document about this client stands, for servers that read such documents; without a `clientId`. */
  readonly clientMetadataUrl?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  /** What the server calls `scope`. */
  readonly scopeParamName?: string | undefined;
  /** RFC 8707; by default what the resource calls itself, else its address. Empty sends none, for servers that refuse unknown ones. */
  readonly resourceIndicator?: string | undefined;
  /** More parameters for the authorization endpoint, and for the requests of the ways that have none. */
  readonly authorizeParams?: Readonly<Record<string, string>> | undefined;
  /** 8666 by default. */
  readonly callbackPort?: number | undefined;
  /**
   * S256 is used also where the metadata of an OpenID provider does not say which methods it knows, as that of some big ones does
   * not. MCP forbids that for its servers.
   */
  readonly assumesPkce?: boolean | undefined;
  /** Who vouches for the caller, for the way `assertion`. */
  readonly assertion?: Assertion | undefined;
  /** Nothing by default. */
  readonly mayBePrivate?: MayBePrivate | undefined;
}

/**
 * What may have addresses that are not public, each with what it names. That was decided when it was chosen, by a person: names are
 * not looked up for it now, because whoever answers for a name may answer once so and then otherwise.
 */
export interface MayBePrivate {
  readonly resource: boolean;
  /** `issuer`, `authorizeUrl` and `tokenUrl`. */
  readonly issuer: boolean;
}

export interface ClientKey {
  /** PKCS #8, PEM. */
  readonly pem: string;
  /** RFC 7518 §3.1, for example `ES256`. */
  readonly algorithm: string;
  readonly keyId?: string | undefined;
}

/** A token of another issuer that stands for the caller (RFC 7523 §2.1). */
export type Assertion =
  /** Given as it is, for example the token of a workload. */
  | { readonly kind: 'jwt'; readonly jwt: string }
  /** Fetched from an identity provider for an identity token: an ID-JAG. */
  | {
      readonly kind: 'identity';
      readonly idToken: string;
      readonly tokenUrl: string;
      readonly clientId: string;
      readonly clientSecret?: string | undefined;
    };

/** How somebody signs in. */
export type SignInWay =
  /** Authorization code with PKCE (RFC 6749 §4.1, RFC 7636). */
  | 'browser'
  /** Device grant (RFC 8628). */
  | 'device'
  /** The client itself (RFC 6749 §4.4). */
  | 'client-credentials'
  /** RFC 7523 §2.1, for a caller that somebody else vouches for. */
  | 'assertion';

export type AuthMethod = 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt';

export interface KeptClient {
  readonly id: string;
  readonly secret?: string | undefined;
  readonly authMethod: AuthMethod;
  /** Where the client was registered for this sign-in (RFC 7591); what RFC 7592 needs to ask for it. */
  readonly registered?:
    | {
        readonly uri?: string | undefined;
        readonly token?: string | undefined;
        /** Milliseconds since the epoch; absent where it never expires. */
        readonly secretExpiresAt?: number | undefined;
        /** The port of its redirect URI. */
        readonly callbackPort?: number | undefined;
        /** All that it may ask for; absent where the registration did not say. */
        readonly scopes?: readonly string[] | undefined;
      }
    | undefined;
}

/**
 * What is kept of a sign-in, sealed by whoever keeps it. Its secrets go to the endpoints of the authorization server and to the
 * resource, nowhere else.
 */
export interface KeptSignIn {
  readonly version: 1;
  readonly way: SignInWay;
  readonly resource: string;
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint?: string | undefined;
  /** The resource and the endpoints may have private addresses. */
  readonly mayBePrivate: boolean;
  readonly client: KeptClient;
  readonly scopes: readonly string[];
  readonly resourceIndicator?: string | undefined;
  /** Of a way without a person: what is sent besides whenever tokens are asked for, like `audience`. */
  readonly authorizeParams?: Readonly<Record<string, string>> | undefined;
  readonly accessToken?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly obtainedAt?: number | undefined;
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number | undefined;
  readonly refreshToken?: string | undefined;
  /** The private key that the tokens are bound to (RFC 9449), a JWK in JSON; absent for bearer tokens. */
  readonly proofKey?: string | undefined;
  /** Who signed in, where the server said so. */
  readonly subject?: string | undefined;
  /** What the resource wanted besides, when it refused a token with `insufficient_scope`; the next sign-in asks for it. */
  readonly wanted?: readonly string[] | undefined;
  /** How often a person was asked for these scopes because the resource wanted more (MCP, step-up authorization). */
  readonly stepUp?: { readonly scopes: readonly string[]; readonly times: number } | undefined;
}

/** Where sign-ins are kept. */
export interface SignInStore {
  readonly read: (key: string) => Promise<KeptSignIn | undefined>;
  /**
   * Hands what is kept now to `next` and keeps what that gives; undefined removes it. It runs alone: across requests and across
   * the processes that share the store. What it resolves with is kept durably. Fails as `next` does, and then keeps what there was.
   */
  readonly change: (
    key: string,
    next: (kept: KeptSignIn | undefined) => Promise<KeptSignIn | undefined>,
  ) => Promise<KeptSignIn | undefined>;
}

/** How a person is reached. */
export interface Person {
  /** Prints the address to visit. */
  readonly show: (address: string) => void;
  /** Opens a browser; absent where none is to be opened. A failure does not end the sign-in. */
  readonly open?: ((address: string) => Promise<void>) | undefined;
  /** Prints the address and the code to type there, for the way `device`. `whole` holds both in one, where there is such. */
  readonly showCode?: ((address: string, code: string, whole?: string) => void) | undefined;
}

export interface SignInServices {
  readonly fetch: SignInFetch;
  readonly clock: Pick<Clock, 'now' | 'sleep' | 'after'>;
  readonly log: Log;
  readonly person?: Person | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How long the person may take; 30 s by default. */
  readonly timeoutMs?: number | undefined;
  /** The `WWW-Authenticate` of the answer that demands this sign-in; asked for where it is absent. */
  readonly challenge?: string | undefined;
  /** An earlier sign-in to the same target: its registration is used again. */
  readonly kept?: KeptSignIn | undefined;
  /** Told what will be asked for and where, before any client is registered or anybody is asked; its failure ends the sign-in. */
  readonly agree?:
    | ((found: { readonly issuer: string; readonly scopes: readonly string[] }) => Promise<void>)
    | undefined;
}

/** What a workload with such a token is: `running`, trying to refresh it, or waiting for a person to sign in again. */
export type SignInState = 'running' | 'auth_retrying' | 'unauthenticated';

/** Tokens of one sign-in, for every request to its resource. */
export interface TokenSource {
  /**
   * A token that is good now; refreshed ahead of its end, once for all that ask. Fails with `auth/not-signed-in` where nobody
   * is signed in, with `auth/sign-in-ended` where a person has to sign in again, and with `auth/unavailable` (with
   * `retryAfterSeconds` in its detail) while the authorization server does not answer.
   */
  readonly token: () => Promise<string>;
  /**
   * Tells that the resource refused a token, with 401, or with 403 for want of scopes. The token to try once more; undefined where
   * there is no other. `challenge` is the answer's `WWW-Authenticate`; the scopes it wants are kept for the next sign-in. `nonce` is
   * its `DPoP-Nonce`: the same token is good then, with new headers.
   */
  readonly refused: (token: string, challenge?: string, nonce?: string) => Promise<string | undefined>;
  readonly state: () => SignInState;
  /** Ends timers, and begins no refresh any more. Resolves when one under way has been kept, or has failed. Idempotent. */
  readonly close: () => Promise<void>;
}

/** Also shows tokens that are bound to a key, each request with a proof of its own (RFC 9449). */
export interface ProvingTokenSource extends TokenSource {
  /** The headers that show the token with one request to the resource: also where it is no bearer token. Errors as `token`. */
  readonly headersFor: (request: {
    readonly method: string;
    readonly url: URL;
  }) => Promise<Record<string, string>>;
}
