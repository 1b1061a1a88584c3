import * as oauth from 'oauth4webapi';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { withRetry } from '@skep/core/fetch/retry.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Role } from '../claims/roles.ts';
import { introspect } from './introspect.ts';
import { checkIssuerUrl, createIssuerFetch, type IssuerFetch, type PlainHttp } from './issuer-fetch.ts';
import { KEYS_OUTAGE_MS, KeySet, fetchKeys, type LoadedKeys } from './key-set.ts';
import { invalid, unavailable, causeText, type TokenOutcome } from './outcome.ts';
import { looksLikeJwt, verifyJwt, type TokenRules } from './verify.ts';

/** One identity provider as configured (docs/behaviour/registry.md#providers). */
export interface ProviderSettings {
  /** For logs. */
  readonly name: string;
  /** Needed unless `jwksUrl` is given; without it `iss` is not checked. */
  readonly issuerUrl?: string | undefined;
  /** Skips discovery of keys. */
  readonly jwksUrl?: string | undefined;
  /** Accepts opaque tokens. */
  readonly introspectionUrl?: string | undefined;
  /** `discover` takes the endpoint from the metadata where `introspectionUrl` is absent. */
  readonly introspection?: 'configured' | 'discover' | undefined;
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  readonly clientSecretFile?: string | undefined;
  readonly caCertPath?: string | undefined;
  readonly authTokenFile?: string | undefined;
  readonly allowPrivateIP: boolean;
  readonly plainHttp: PlainHttp;
  readonly rules: Omit<TokenRules, 'issuers'>;
  /** `slash` also accepts an `iss` that differs from `issuerUrl` by a `/` at the end. */
  readonly issuerMatch: 'exact' | 'slash';
  /** Least time between two loads of keys for unknown key ids. */
  readonly forcedRefreshEveryMs: number;
  /** How long known keys serve while the provider does not answer; an hour when absent. */
  readonly keysOutageMs?: number | undefined;
  /** What it may say about its callers; everything when absent. */
  readonly grants?: ProviderGrants | undefined;
}

export interface ProviderServices {
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  /** Replaces real requests; tests only. */
  readonly fetch?: IssuerFetch;
}

/** Says whether a token is good. */
export interface TokenProvider {
  readonly name: string;
  readonly check: (token: string) => Promise<TokenOutcome>;
  /** Whether its keys are known or could be had; always true where it needs none. The reason is logged. */
  readonly ready: () => Promise<boolean>;
  /** Ends requests and connections. Idempotent. */
  readonly close: () => void;
}

/**
 * Checks the settings and reads the CA bundle; the provider itself is asked with the first token. Fails with
 * `auth/invalid-provider`, `fetch/ca-bundle` or `file/*`.
 */
export async function createProvider(
  settings: ProviderSettings,
  services: ProviderServices,
): Promise<TokenProvider> {
  checkSettings(settings);
  const ca = settings.caCertPath === undefined ? undefined : await readCaBundle(settings.caCertPath);
  const { allowPrivateIP: allowPrivate, plainHttp, authTokenFile: tokenFile } = settings;
  const http = services.fetch ?? createIssuerFetch({ plainHttp, allowPrivate, ca, tokenFile });
  const rules: TokenRules = { ...settings.rules, issuers: acceptedIssuers(settings) };
  const parts: Parts = { settings, services, fetch: http.fetch, rules };
  const keys = new KeySet({
    load: (signal) => loadKeys(parts, signal),
    clock: services.clock,
    log: services.log.child({ provider: settings.name }),
    forcedEveryMs: settings.forcedRefreshEveryMs,
    outageMs: settings.keysOutageMs ?? KEYS_OUTAGE_MS,
  });
  const opaque = opaqueCheck(parts);
  const check = (token: string): Promise<TokenOutcome> =>
    // Where no keys are to be had, introspection alone says what a token is worth, whatever it looks like.
    hasKeys(settings) && looksLikeJwt(token)
      ? verifyJwt(token, rules, keys, services.clock.now())
      : opaque(token);
  return {
    name: settings.name,
    check: async (token) => withinGrants(await check(token), settings.grants),
    ready: () => (hasKeys(settings) ? keys.ready() : Promise.resolve(true)),
    close() {
      keys.close();
      http.close();
    },
  };
}

/** One that only introspects has neither an issuer nor keys to ask for. */
function hasKeys({ issuerUrl, jwksUrl }: ProviderSettings): boolean {
  return issuerUrl !== undefined || jwksUrl !== undefined;
}

/** What one request waits for metadata, retries included. */
const DISCOVERY_BUDGET = 8_000;

interface Parts {
  readonly settings: ProviderSettings;
  readonly services: ProviderServices;
  readonly fetch: IssuerFetch['fetch'];
  readonly rules: TokenRules;
}

function checkSettings(settings: ProviderSettings): void {
  const { issuerUrl, jwksUrl, introspectionUrl, plainHttp } = settings;
  if (issuerUrl === undefined && jwksUrl === undefined && introspectionUrl === undefined) {
    throw new SkepError('auth/invalid-provider', {
      message: `identity provider "${settings.name}" has neither an issuer nor a key set nor an introspection address`,
    });
  }
  for (const url of [issuerUrl, jwksUrl, introspectionUrl])
    if (url !== undefined) checkIssuerUrl(url.trim(), plainHttp);
}

function acceptedIssuers({ issuerUrl, issuerMatch }: ProviderSettings): string[] {
  const issuer = issuerUrl?.trim();
  if (issuer === undefined) return [];
  const bare = issuer.replace(/\/+$/u, '');
  return issuerMatch === 'exact' ? [issuer] : [bare, `${bare}/`];
}

async function loadKeys(parts: Parts, signal: AbortSignal): Promise<LoadedKeys> {
  const url = parts.settings.jwksUrl ?? (await metadata(parts, signal)).jwks_uri;
  if (url === undefined) {
    throw new SkepError('auth/unavailable', {
      message: `the metadata of identity provider "${parts.settings.name}" names no key set`,
    });
  }
  return fetchKeys(parts.fetch, url, signal);
}

const ATTEMPTS = { tries: 3, baseMs: 500, capMs: 2_000 } as const;

/**
 * Reads `<issuer>/.well-known/openid-configuration` (OpenID Connect Discovery 1.0 §4), or where there is none the
 * document of RFC 8414; the `issuer` in it must be the one asked for. Three attempts. Fails with `auth/unavailable`.
 */
async function metadata(
  { settings, services, fetch }: Parts,
  signal: AbortSignal,
): Promise<oauth.AuthorizationServer> {
  if (settings.issuerUrl === undefined) {
    throw new SkepError('auth/unavailable', {
      message: `identity provider "${settings.name}" has no issuer to ask`,
    });
  }
  const issuer = new URL(settings.issuerUrl.trim());
  const ask = (algorithm: 'oidc' | 'oauth2'): Promise<Response> =>
    oauth.discoveryRequest(issuer, {
      algorithm,
      signal,
      [oauth.customFetch]: (url, init) => fetch(url, { headers: init.headers, signal }),
      // `fetch` decides which plain addresses are accepted.
      [oauth.allowInsecureRequests]: true,
    });
  const read = async (): Promise<oauth.AuthorizationServer> => {
    const openid = await ask('oidc');
    return oauth.processDiscoveryResponse(issuer, openid.status === 404 ? await ask('oauth2') : openid);
  };
  const { clock, random } = services;
  try {
    return await withRetry(read, () => ({ retry: true }), {
      ...ATTEMPTS,
      sleep: clock.sleep,
      random,
      signal,
    });
  } catch (cause) {
    throw new SkepError('auth/unavailable', {
      message: `cannot read the metadata of identity provider "${issuer.href}"`,
      cause,
    });
  }
}

/** What happens to tokens that are no JWT. */
function opaqueCheck(parts: Parts): (token: string) => Promise<TokenOutcome> {
  const { settings, services, fetch, rules } = parts;
  if (settings.introspectionUrl === undefined && settings.introspection !== 'discover') {
    return () => Promise.resolve(invalid('opaque-not-accepted'));
  }
  let endpoint = settings.introspectionUrl;
  const check = async (token: string): Promise<TokenOutcome> => {
    try {
      endpoint ??= (await metadata(parts, AbortSignal.timeout(DISCOVERY_BUDGET))).introspection_endpoint;
      if (endpoint === undefined) return invalid('opaque-not-accepted');
    } catch (cause) {
      return unavailable(cause);
    }
    const { clientId } = settings;
    const outcome = await introspect(
      token,
      { endpoint, clientId, clientSecret: secretOf(settings), fetch, rules },
      services.clock.now(),
    );
    if (outcome.kind === 'unavailable') {
      services.log.warn(
        { provider: settings.name, reason: causeText(outcome.cause) },
        'cannot introspect a token',
      );
    }
    return outcome;
  };
  let asking = 0;
  return async (token) => {
    // Made-up tokens must not become as many requests to the provider, nor wait in line before good ones.
    if (asking >= MOST_INTROSPECTIONS) return unavailable(BUSY);
    asking += 1;
    try {
      return await check(token);
    } finally {
      asking -= 1;
    }
  };
}

/** At once; an answer takes milliseconds. */
const MOST_INTROSPECTIONS = 16;
const BUSY = new SkepError('auth/unavailable', {
  message: 'too many tokens are being introspected',
  detail: { retryAfterSeconds: 1 },
});

function secretOf(settings: ProviderSettings): (() => Promise<string>) | undefined {
  const { clientSecret, clientSecretFile: file } = settings;
  if (clientSecret !== undefined) return () => Promise.resolve(clientSecret);
  if (file === undefined) return undefined;
  return async () => (await readText(file, { maxBytes: 64 * 1024, what: 'client secret file' })).trim();
}

/** What an identity provider may say about its callers; all of it where a member is absent. */
interface ProviderGrants {
  /** Roles that its tokens may lead to. */
  readonly roles?: readonly Role[] | undefined;
  /** Claims that count; `iss`, which is checked, always does. */
  readonly claims?: readonly string[] | undefined;
}

/**
 * What is left of an identity when its provider speaks for these claims and roles only. Whatever decides looks at claims and
 * roles; subject, name and address stay for logs.
 */
function withinGrants(outcome: TokenOutcome, grants: ProviderGrants | undefined): TokenOutcome {
  if (outcome.kind !== 'identity' || grants === undefined) return outcome;
  const { identity } = outcome;
  const speaksFor = (key: string): boolean => key === 'iss' || (grants.claims?.includes(key) ?? true);
  const limited = {
    ...identity,
    groups: speaksFor('groups') ? identity.groups : [],
    claims: Object.fromEntries(Object.entries(identity.claims).filter(([key]) => speaksFor(key))),
    ...(grants.roles === undefined ? {} : { grantable: grants.roles }),
  };
  return { ...outcome, identity: limited };
}
