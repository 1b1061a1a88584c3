import type { RawClaims } from '@skep/auth/claims/claims.ts';
import type { ArrayMatch } from '@skep/auth/claims/covers.ts';
import { resolveRoles, type Role, type RoleRules } from '@skep/auth/claims/roles.ts';
import { tokenIdentity, type Identity } from '@skep/auth/token/identity.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

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
  /** In fixed order. */
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

/** Where an operator may make access stricter, or looser, than it is by default (docs/behaviour/registry.md#switches). */
interface Switches {
  /** a publish request must carry claims. */
  readonly requirePublishClaims: boolean;
  /** registries and sources without claims are open to every signed-in caller, or to super-admins only. */
  readonly unlabeled: 'open' | 'deny';
  /** what a list in an existing resource's claims needs of a caller. New claims always need all of it. */
  readonly arrayMatch: ArrayMatch;
  /** publishers must also satisfy the claims of the managed source. */
  readonly managedSourceGate: boolean;
}

export const CONTRACT_SWITCHES: Switches = {
  requirePublishClaims: false,
  unlabeled: 'open',
  arrayMatch: 'all',
  managedSourceGate: false,
};

export const STRICT_SWITCHES: Switches = {
  requirePublishClaims: true,
  unlabeled: 'deny',
  arrayMatch: 'any',
  managedSourceGate: true,
};

/** Switches as `auth.authz` of the configuration holds them; each single one overrides the preset. */
export type SwitchSettings = { readonly [Name in keyof Switches]?: Switches[Name] | undefined } & {
  readonly preset?: 'strict' | undefined;
};

export function resolveSwitches(settings: SwitchSettings): Switches {
  const base = settings.preset === 'strict' ? STRICT_SWITCHES : CONTRACT_SWITCHES;
  return {
    requirePublishClaims: settings.requirePublishClaims ?? base.requirePublishClaims,
    unlabeled: settings.unlabeled ?? base.unlabeled,
    arrayMatch: settings.arrayMatch ?? base.arrayMatch,
    managedSourceGate: settings.managedSourceGate ?? base.managedSourceGate,
  };
}

/** What `GET /v1/me` answers (docs/behaviour/registry.md#me). */
export interface CallerRecord {
  /** `sub` of the token; the empty text where it has none. */
  readonly subject: string;
  /** In fixed order; superAdmin does not expand into the roles it implies. */
  readonly roles: readonly Role[];
}

/** Describes the caller to itself. Throws `auth/unauthenticated` in anonymous mode: there is nobody to describe. */
export function describeCaller(authority: Authority): CallerRecord {
  if (authority.kind === 'anonymous') throw new SkepError('auth/unauthenticated');
  return { subject: authority.identity.subject, roles: authority.kind === 'full' ? authority.roles : [] };
}

/** What people call the caller, for logs: address, user name or name, whichever the token has first; else empty. */
export function userName({ email, name, claims }: Identity): string {
  const preferred = claims['preferred_username'];
  return email || (typeof preferred === 'string' ? preferred : '') || name;
}

/** The authority of a caller whose token carried these claims. For explaining: nobody is let in by it. */
export function supposedCaller(mode: AccessMode, claims: RawClaims): Authority {
  if (mode.kind === 'anonymous') return ANONYMOUS;
  const subject = claims['sub'];
  return authorityOf(mode, tokenIdentity(claims, typeof subject === 'string' ? subject : ''));
}

/** The mode in which an authority was worked out. */
export function modeOf(authority: Authority): AccessMode {
  if (authority.kind === 'anonymous') return { kind: 'anonymous' };
  if (authority.kind === 'signed-in') return { kind: 'auth-only' };
  return { kind: 'full', rules: authority.rules, switches: authority.switches };
}
