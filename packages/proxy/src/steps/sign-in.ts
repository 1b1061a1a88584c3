import type { ServerResponse } from 'node:http';
import {
  authenticateBearer,
  bearerChallenge,
  bearerToken,
  describeRefusal,
  type Refusal,
} from '@skep/auth/resource/authenticate.ts';
import { metadataUrl, resourceMetadata, type ResourceMetadata } from '@skep/auth/resource/metadata.ts';
import { TokenCache } from '@skep/auth/token/cache.ts';
import { localIdentity, type Identity } from '@skep/auth/token/identity.ts';
import type { IssuerFetch } from '@skep/auth/token/issuer-fetch.ts';
import { createProvider } from '@skep/auth/token/provider.ts';
import { createVerifier } from '@skep/auth/token/verifier.ts';
import { CODES, type Code, type CodeRow } from '@skep/core/errors/codes.ts';
import { headerValues } from '@skep/core/fetch/header-values.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import { refuse } from '../call/refuse.ts';

/** Which tokens clients need (docs/behaviour/proxy.md#sign-in). One of issuer, key set and introspection has to be there. */
export interface SignInSettings {
  readonly issuer?: string | undefined;
  /** What `aud` must contain; the resource URL where absent, and nothing where that is too. */
  readonly audience?: string | undefined;
  readonly jwksUrl?: string | undefined;
  readonly introspectionUrl?: string | undefined;
  /** With its secret, for introspection. */
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /** This endpoint as clients know it (RFC 9728). */
  readonly resourceUrl?: string | undefined;
  /** Told to clients; in challenges only where given. */
  readonly scopes?: readonly string[] | undefined;
  /** Scopes without which a token is refused with 403. */
  readonly requiredScopes?: readonly string[] | undefined;
  readonly allowHttp: boolean;
  readonly allowPrivateIP: boolean;
  /** Absolute; PEM. */
  readonly caPath?: string | undefined;
  /** Absolute; holds a bearer token for metadata and keys. */
  readonly tokenFile?: string | undefined;
}

export interface SignInServices {
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly osUser?: string | undefined;
  /** Replaces requests to the identity provider; tests only. */
  readonly fetch?: IssuerFetch;
}

/** The steps and the document of an endpoint whose clients have to sign in. */
export interface SignIn {
  /** The row `auth`. */
  readonly auth: Step;
  /** The row `client-token`: the server never sees what its clients signed in with. */
  readonly clientToken: Step;
  /** RFC 9728; undefined where nobody could sign in by it. */
  readonly metadata: (
    call: Pick<Call, 'authority' | 'prefix' | 'req'>,
    path: string,
  ) => ResourceMetadata | undefined;
  /** Idempotent. */
  readonly close: () => void;
}

/** A key id that nobody knows makes the proxy ask for the keys at most this often. */
const FORCED_REFRESH_MS = 10_000;
const DEFAULT_SCOPES = ['openid'];
const MAX_TOKEN_FILE_BYTES = 64 * 1024;

/**
 * Checks the settings and reads the files that they name; the identity provider is asked with the first token. Fails with
 * `auth/invalid-provider`, `fetch/ca-bundle` or `file/*`.
 */
export async function openSignIn(settings: SignInSettings, services: SignInServices): Promise<SignIn> {
  const { resourceUrl, tokenFile } = settings;
  const document = resourceUrl === undefined ? undefined : metadataUrl(resourceUrl);
  // It is read again for every request; one that is not there is told now.
  if (tokenFile !== undefined)
    await readText(tokenFile, { maxBytes: MAX_TOKEN_FILE_BYTES, what: 'token file' });
  const provider = await createProvider(providerSettings(settings), services);
  const verifier = createVerifier([provider], new TokenCache({ now: services.clock.now }));
  const { issuer: realm, scopes, requiredScopes = [] } = settings;
  const challenge = (more: Parameters<typeof bearerChallenge>[0]): string =>
    bearerChallenge({ realm, resourceMetadata: document, scopes, ...more });

  const refuseToken = (res: ServerResponse, refusal: Refusal): void => {
    const description = describeRefusal(refusal, 'reason');
    services.log.debug({ reason: refusal.reason }, 'a client was not signed in');
    // RFC 6750 §3.1: no code for a request that says nothing of itself.
    const told = refusal.reason === 'missing' ? {} : { error: refusal.error, description };
    answer(res, 'auth/unauthenticated', { error: refusal.error, description, challenge: challenge(told) });
  };
  const refuseScopes = (res: ServerResponse): void => {
    const description = `the token needs the scopes: ${requiredScopes.join(' ')}`;
    const error = 'insufficient_scope';
    answer(res, 'auth/insufficient-scope', {
      error,
      description,
      challenge: challenge({ error, description, scopes: requiredScopes }),
    });
  };
  const admitted = async (call: Call): Promise<Identity | undefined> => {
    const { req, res, isOwn } = call;
    if (isOwn) return localIdentity(services.osUser, services.clock.now());
    const bearer = bearerToken(headerValues(req.rawHeaders, 'authorization'));
    const asked = authenticateBearer(bearer, verifier);
    const found = asked instanceof Promise ? await asked : asked;
    if (found.kind === 'refused') refuseToken(res, found);
    else if (found.kind === 'unavailable')
      refuse(res, 'auth/unavailable', { headers: { 'Retry-After': found.retryAfterSeconds } });
    else if (!holdsScopes(found.identity, requiredScopes)) refuseScopes(res);
    else {
      if (bearer.kind === 'token') call.bearer = bearer.token;
      return found.identity;
    }
    return undefined;
  };
  return {
    async auth(call, next) {
      const identity = await admitted(call);
      if (identity === undefined) return;
      call.identity = identity;
      await next();
    },
    clientToken,
    metadata({ authority, prefix, req }, path) {
      const { issuer } = settings;
      const host = authority ?? req.headers.host;
      const resource = resourceUrl ?? (issuer && host ? `http://${host}${prefix}${path}` : undefined);
      if (resource === undefined) return undefined;
      return resourceMetadata({
        resource,
        issuers: issuer ? [issuer] : [],
        scopes: scopes ?? DEFAULT_SCOPES,
      });
    },
    close: () => verifier.close(),
  };
}

function providerSettings(settings: SignInSettings): Parameters<typeof createProvider>[0] {
  const { issuer, jwksUrl, introspectionUrl, clientId, clientSecret, caPath, tokenFile } = settings;
  return {
    name: 'oidc',
    issuerUrl: issuer,
    jwksUrl,
    introspectionUrl,
    // Without a login most endpoints answer nobody, and a made-up token would look like an outage.
    introspection: clientId !== undefined && clientSecret !== undefined ? 'discover' : 'configured',
    clientId,
    clientSecret,
    caCertPath: caPath,
    authTokenFile: tokenFile,
    allowPrivateIP: settings.allowPrivateIP,
    plainHttp: settings.allowHttp ? 'any' : 'never',
    rules: { audience: settings.audience ?? settings.resourceUrl, leewayS: 0, subject: 'required' },
    issuerMatch: 'slash',
    forcedRefreshEveryMs: FORCED_REFRESH_MS,
  };
}

/** By `scope` (RFC 9068 §2.2.3), or by `scp`, which some providers write, as a text or a list. */
function holdsScopes({ claims }: Identity, required: readonly string[]): boolean {
  if (required.length === 0) return true;
  const held = [claims['scope'], claims['scp']].flatMap((one) => {
    if (typeof one === 'string') return one.split(' ');
    return Array.isArray(one) ? one.filter((scope) => typeof scope === 'string') : [];
  });
  return required.every((scope) => held.includes(scope));
}

/** What a client signs in with, here and at other servers of its browser. */
const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization'] as const;

const clientToken: Step = (call, next) => {
  for (const name of CREDENTIALS) delete call.req.headers[name];
  return next();
};

interface Refused {
  readonly error: string;
  readonly description: string;
  /** `WWW-Authenticate`. */
  readonly challenge: string;
}

function answer(res: ServerResponse, code: Code, { error, description, challenge }: Refused): void {
  if (res.headersSent) return;
  const row: CodeRow = CODES[code];
  res.statusCode = row.httpStatus;
  if (res.destroyed) return;
  const body = JSON.stringify({ error, error_description: description });
  res
    .writeHead(row.httpStatus, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      'Cache-Control': 'no-store',
      'WWW-Authenticate': challenge,
    })
    .end(body);
}
