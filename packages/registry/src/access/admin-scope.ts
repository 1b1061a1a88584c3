import { asksForNothing, isUnlabeled, type Claims, type RawClaims } from '@skep/auth/claims/claims.ts';
import type { Authority } from './authority.ts';
import {
  coversNew,
  type Decision,
  denyIf,
  firstRefusal,
  hideDenied,
  satisfiesExisting,
  unlessExempt,
} from './decision.ts';

/** Who made a source or registry; never changes (docs/behaviour/registry.md#model). */
export type CreationType = 'CONFIG' | 'API';

/** A source or registry as far as access is concerned. */
export interface ScopedResource {
  readonly creationType: CreationType;
  readonly claims: RawClaims;
}

// docs/behaviour/registry.md#administration. Roles are checked before; these are the conditions beyond the role.

/**
 * Reading one source or registry, or one row of a list. The refusal is 404 and not 403, so that a hidden name cannot be
 * told from a missing one; a list leaves the row out.
 */
export function decideRead(authority: Authority, claims: RawClaims): Decision {
  return hideDenied(satisfiesExisting(authority, claims));
}

/** Replacing a source or registry: what exists is satisfied, what comes is held, protection is not taken away. */
export function decideUpdate(authority: Authority, existing: ScopedResource, next: Claims): Decision {
  return firstRefusal([
    () => notFromConfig(existing),
    () => satisfiesExisting(authority, existing.claims),
    () => coversNew(authority, next),
    () => keepsAClaim(authority, existing.claims, next),
  ]);
}

export function decideDelete(authority: Authority, existing: ScopedResource): Decision {
  return firstRefusal([() => notFromConfig(existing), () => satisfiesExisting(authority, existing.claims)]);
}

/** In every mode, and for super-admins too: the file would undo the change at the next start. */
function notFromConfig(existing: ScopedResource): Decision {
  return denyIf(existing.creationType === 'CONFIG', 'access/config-created', { reason: 'config-created' });
}

/**
 * No claims mean open to every signed-in caller, so a team that drops its last claim would publish the resource to all
 * the others. Only a super-admin may.
 */
function keepsAClaim(authority: Authority, existing: RawClaims, next: Claims): Decision {
  const isLast = asksForNothing(next) && !isUnlabeled(existing);
  return unlessExempt(authority, () => denyIf(isLast, 'access/last-claim', { reason: 'last-claim-dropped' }));
}
