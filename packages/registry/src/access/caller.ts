import { ROLES, type Role } from '@skep/auth/claims/roles.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Authority } from './authority.ts';

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
