import type { RoleRules } from '@skep/auth/claims/roles.ts';
import type { ProviderSettings } from '@skep/auth/token/provider.ts';
import type { SignInMode } from '../access/authority.ts';

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
