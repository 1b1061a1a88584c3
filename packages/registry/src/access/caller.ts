import type { RawClaims } from '@skep/auth/claims/claims.ts';
import { ROLES, type Role } from '@skep/auth/claims/roles.ts';
import { tokenIdentity, type Identity } from '@skep/auth/token/identity.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ANONYMOUS, authorityOf, type Authority, type AccessMode } from './authority.ts';

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
  const { subject } = authority.identity;
  if (authority.kind === 'signed-in') return { subject, roles: [] };
  return { subject, roles: ROLES.filter((role) => authority.roles.includes(role)) };
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
