import { parseClaims, type ClaimLimits, type Claims } from '@skep/auth/claims/claims.ts';
import type { RoleRules } from '@skep/auth/claims/roles.ts';
import type { PlainHttp } from '@skep/auth/token/issuer-fetch.ts';
import type { ProviderSettings } from '@skep/auth/token/provider.ts';
import type { SignInMode } from '../access/authority.ts';
import { resolveSwitches } from '../access/switches.ts';
import type { AuthShape } from './auth-shape.ts';

/** The protected resource as clients know it (RFC 9728). */
export interface ProtectedResource {
  /** Absolute; without it there is no metadata document. */
  readonly url: string | undefined;
  readonly realm: string;
  readonly scopes: readonly string[] | undefined;
}

export interface AnonymousAuth {
  readonly mode: 'anonymous';
  /** What `auth.authz` holds, which this mode does not use. */
  readonly unusedRoles: RoleRules;
  /** Names, lower-case, under which callers reach the server besides `localhost` and IP addresses. */
  readonly allowedHosts: readonly string[];
}

export interface OauthAuth {
  readonly mode: 'oauth';
  readonly access: SignInMode;
  readonly publicPaths: readonly string[];
  readonly resource: ProtectedResource;
  /** In the order in which they are tried; at least one. */
  readonly providers: readonly (ProviderSettings & { readonly issuerUrl: string })[];
}

/** The `auth` block of a configuration, checked and with its defaults. */
export type AuthConfig = AnonymousAuth | OauthAuth;

/** Clocks of issuers and ours differ by seconds; an expiry has no such grace. */
const LEEWAY_S = 5;
/** A key id that nobody knows makes us ask for the keys at most this often. */
const FORCED_REFRESH_MS = 60_000;

interface AuthLimits {
  readonly plainHttp: PlainHttp;
  readonly claimLimits: ClaimLimits;
}

/** The block with its defaults. Expects a shape that passed `authProblems`. */
export function resolveAuth(auth: AuthShape, { plainHttp, claimLimits }: AuthLimits): AuthConfig {
  const { mode, oauth, authz, publicPaths, allowedHosts } = auth;
  if (mode === 'anonymous' || oauth === undefined) {
    const unusedRoles = rulesOf(authz?.roles, claimLimits);
    return { mode: 'anonymous', unusedRoles, allowedHosts };
  }
  return {
    mode: 'oauth',
    access: accessOf(authz, claimLimits),
    publicPaths: publicPaths.map((path) => (path === '/' ? path : path.replace(/\/+$/, ''))),
    resource: {
      url: oauth.resourceUrl,
      realm: oauth.realm,
      scopes: oauth.scopesSupported,
    },
    providers: oauth.providers.map((provider) => ({
      ...providerOf(provider, plainHttp),
      keysOutageMs: oauth.keysOutage,
    })),
  };
}

/**
 * The presence of the key decides, not what it holds: an empty one fails closed (docs/behaviour/registry.md#switches,
 * D14).
 */
function accessOf(authz: AuthShape['authz'], limits: ClaimLimits): SignInMode {
  if (authz === undefined) return { kind: 'auth-only' };
  const { roles, ...switches } = authz ?? {};
  return { kind: 'full', rules: rulesOf(roles, limits), switches: resolveSwitches(switches) };
}

type RolesShape = NonNullable<NonNullable<AuthShape['authz']>['roles']>;

function rulesOf(roles: RolesShape | undefined, limits: ClaimLimits): RoleRules {
  const given = Object.entries(roles ?? {}).map(([role, list]): [string, Claims[]] => [
    role,
    (list ?? []).map((rule) => parseClaims(rule, limits)),
  ]);
  return Object.fromEntries(given);
}

function providerOf(
  provider: NonNullable<AuthShape['oauth']>['providers'][number],
  plainHttp: PlainHttp,
): OauthAuth['providers'][number] {
  const { audience, issuerUrl, ...rest } = provider;
  return {
    ...rest,
    issuerUrl: issuerUrl.trim(),
    plainHttp,
    rules: { audience, leewayS: LEEWAY_S, subject: 'optional' },
    issuerMatch: 'exact',
    forcedRefreshEveryMs: FORCED_REFRESH_MS,
  };
}
