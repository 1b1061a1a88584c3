import { parseClaims, type ClaimLimits, type Claims } from '@skep/auth/claims/claims.ts';
import { ROLES, type RoleRules } from '@skep/auth/claims/roles.ts';
import type { PlainHttp } from '@skep/auth/token/issuer-fetch.ts';
import { KEYS_OUTAGE_MS } from '@skep/auth/token/key-set.ts';
import type { ProviderSettings } from '@skep/auth/token/provider.ts';
import { formatDuration } from '@skep/core/time/duration.ts';
import { z } from 'zod';
import { CONTRACT_SWITCHES, resolveSwitches, type SignInMode } from '../access/authority.ts';
import { claims } from '../shape/claims.ts';
import { duration } from '../shape/texts.ts';

const text = z.string().min(1, 'must not be empty');
const rules = z.array(claims).optional();

/** RFC 6749 §3.3. */
const SCOPE = /^[\u0021\u0023-\u005B\u005D-\u007E]+$/u;

const provider = z.strictObject({
  name: text.describe('for logs and metrics'),
  issuerUrl: text.describe('exactly the `iss` of its tokens; https, or http on this machine'),
  audience: text.describe('what `aud` of a token must contain'),
  jwksUrl: text.optional().describe('where its keys are; found through the issuer when absent'),
  introspectionUrl: text.optional().describe('accepts opaque tokens too (RFC 7662)'),
  clientId: text.optional().describe('for introspection'),
  clientSecretFile: text.optional().describe('absolute; for introspection'),
  caCertPath: text.optional().describe('absolute; PEM file with the authorities to trust'),
  authTokenFile: text
    .optional()
    .describe('absolute; bearer token for its metadata and keys, also where it has them on another host'),
  allowPrivateIP: z.boolean().default(false).describe('lets the provider be at a private address'),
  grants: z
    .strictObject({
      roles: z.array(z.enum(ROLES)).optional().describe('roles that its tokens may lead to; all when absent'),
      claims: z
        .array(text)
        .optional()
        .describe('claims of its tokens that count, besides `iss`; all when absent'),
    })
    .optional()
    .describe('what it may say about its callers; everything when absent'),
  login: z
    .strictObject({
      clientId: text
        .optional()
        .describe('public client, without a secret; registered by `skep login` itself when absent'),
      scopes: z
        .array(z.string().regex(SCOPE, 'must be a scope without blanks'))
        .optional()
        .describe('asked for; what the provider advises when absent'),
      audience: text
        .optional()
        .describe('sent as `audience`, and a URL also as `resource` (RFC 8707), where its tokens need that'),
    })
    .optional()
    .describe('how `skep login` signs people in, told to everyone who asks; any provider when none has it'),
});

const authz = z.strictObject({
  preset: z.enum(['strict']).optional().describe('turns the stricter of the following rules on'),
  requirePublishClaims: z.boolean().optional().meta({
    description: 'refuses to publish without claims',
    default: CONTRACT_SWITCHES.requirePublishClaims,
  }),
  unlabeled: z
    .enum(['open', 'deny'])
    .optional()
    .meta({ description: 'registries and sources without claims', default: CONTRACT_SWITCHES.unlabeled }),
  arrayMatch: z.enum(['all', 'any']).optional().meta({
    description: 'how much of a list of claim values a reader must hold',
    default: CONTRACT_SWITCHES.arrayMatch,
  }),
  managedSourceGate: z.boolean().optional().meta({
    description: 'publishers need the claims of the managed source',
    default: CONTRACT_SWITCHES.managedSourceGate,
  }),
  roles: z
    .strictObject({
      superAdmin: rules,
      manageSources: rules,
      manageRegistries: rules,
      manageEntries: rules,
    })
    .optional()
    .describe('for each role rules; one that matches grants it, and it matches when all its claims do'),
});

/** `auth` of the configuration. */
export const authShape = z.strictObject({
  mode: z.enum(['anonymous', 'oauth']).default('oauth').describe('`anonymous` is for development'),
  publicPaths: z.array(z.string()).default([]).describe('paths that need no token'),
  allowedHosts: z
    .array(
      z
        .string()
        .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, 'must be a host name in lower case, without a port'),
    )
    .default([])
    .describe(
      'in anonymous mode, names under which callers reach the server, besides `localhost` and IP addresses',
    ),
  oauth: z
    .strictObject({
      resourceUrl: text
        .optional()
        .describe('public address of this server, for clients that look for where to sign in'),
      realm: z.string().default('mcp-registry').describe('of challenges'),
      keysOutage: duration({ milliseconds: 86_400_000, text: '24h' })
        .prefault(formatDuration(KEYS_OUTAGE_MS))
        .describe('for how long known keys serve while a provider does not answer, at least `15m`'),
      scopesSupported: z.array(text).optional().describe('shown to clients'),
      providers: z
        .array(provider)
        .min(1, 'must hold at least one identity provider')
        .describe('asked in this order'),
    })
    .optional(),
  // `authz:` with nothing behind it is a present key, so it turns authorization on and not off.
  authz: authz.nullable().optional().describe('its presence turns authorization on, also when it is empty'),
});

type AuthShape = z.infer<typeof authShape>;

/** The protected resource as clients know it (RFC 9728). */
export interface ProtectedResource {
  /** Absolute; without it there is no metadata document. */
  readonly url: string | undefined;
  readonly realm: string;
  readonly scopes: readonly string[] | undefined;
}

/** How people sign in at one identity provider with `skep login`. Everyone may know it. */
export interface Login {
  readonly issuer: string;
  readonly clientId?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly audience?: string | undefined;
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
  /** In the order of the providers; at least one. */
  readonly logins: readonly Login[];
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
    logins: loginsOf(oauth.providers),
  };
}

type ProviderShape = NonNullable<AuthShape['oauth']>['providers'][number];

/** Those of the providers that say how; where none does, people may try each. */
function loginsOf(providers: readonly ProviderShape[]): readonly Login[] {
  const meant = providers.filter(({ login }) => login !== undefined);
  return (meant.length > 0 ? meant : providers).map(({ issuerUrl, login }) => ({
    issuer: issuerUrl.trim(),
    ...login,
  }));
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

function providerOf(provider: ProviderShape, plainHttp: PlainHttp): OauthAuth['providers'][number] {
  const { audience, issuerUrl, login: _, ...rest } = provider;
  return {
    ...rest,
    issuerUrl: issuerUrl.trim(),
    plainHttp,
    rules: { audience, leewayS: LEEWAY_S, subject: 'optional' },
    issuerMatch: 'exact',
    forcedRefreshEveryMs: FORCED_REFRESH_MS,
  };
}
