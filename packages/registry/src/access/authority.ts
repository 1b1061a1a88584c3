import { resolveRoles, type Role, type RoleRules } from '@skep/auth/claims/roles.ts';
import type { Identity } from '@skep/auth/token/identity.ts';
import type { Switches } from './switches.ts';

/**
 * Who is asking, decided once per request. A closed union: every decision names the kinds it lets pass, so a new kind
 * cannot be forgotten and "nothing known about the caller" can never read as "allowed".
 */
export type Authority =
  /** `auth.mode: anonymous`: there is no sign-in, and by configuration everything is public. */
  | { readonly kind: 'anonymous' }
  /** Auth-only: a valid token is needed, after which nothing is checked. */
  | { readonly kind: 'signed-in'; readonly identity: Identity }
  | FullAuthority;

/** Full authorization: roles, claims and every check. */
export interface FullAuthority {
  readonly kind: 'full';
  readonly identity: Identity;
  readonly roles: readonly Role[];
  /** What `roles` was resolved by, so that a refusal can say which rule would grant. */
  readonly rules: RoleRules;
  readonly switches: Switches;
}

/**
 * How the server was configured to decide (docs/behaviour/registry.md#modes). `full` is the presence of `auth.authz`,
 * even an empty one: then nobody has a role, which fails closed (docs/behaviour/registry.md#modes).
 */
export type AccessMode =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'auth-only' }
  | { readonly kind: 'full'; readonly rules: RoleRules; readonly switches: Switches };

/** A mode in which a token is needed. */
export type SignInMode = Exclude<AccessMode, { kind: 'anonymous' }>;

/** The only authority there is in anonymous mode. */
export const ANONYMOUS: Authority = { kind: 'anonymous' };

/** The authority of a caller whose token was accepted. Roles come from the token alone; nothing is stored. */
export function authorityOf(mode: SignInMode, identity: Identity): Authority {
  if (mode.kind === 'auth-only') return { kind: 'signed-in', identity };
  const roles = resolveRoles(identity, mode.rules);
  return { kind: 'full', identity, roles, rules: mode.rules, switches: mode.switches };
}

/**
 * `authorityOf` for one configuration and many requests: the same identity object, as the token cache gives it out, has
 * the same authority object, by which others may remember what they worked out for it.
 */
export function rememberedAuthority(mode: SignInMode): (identity: Identity) => Authority {
  const known = new WeakMap<Identity, Authority>();
  return (identity) => {
    const authority = known.get(identity) ?? authorityOf(mode, identity);
    known.set(identity, authority);
    return authority;
  };
}

export function isSuperAdmin(authority: FullAuthority): boolean {
  return authority.roles.includes('superAdmin');
}
