import { asksForNothing, isUnlabeled, type Claims, type RawClaims } from '@skep/auth/claims/claims.ts';
import type { Authority } from './authority.ts';
import { allow, type Decision, deny, firstRefusal } from './decision.ts';
import { coversNew, satisfiesExisting, unlessExempt } from './satisfies.ts';

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
  const decision = satisfiesExisting(authority, claims);
  return decision.allowed ? decision : { ...decision, code: 'access/hidden' };
}

/** Nobody may create what they could not satisfy themselves. */
export function decideCreate(authority: Authority, claims: Claims): Decision {
  return coversNew(authority, claims);
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

/** Naming a source in a registry. 403 although it reveals that the source exists. */
export function decideReference(authority: Authority, sourceClaims: RawClaims): Decision {
  return satisfiesExisting(authority, sourceClaims);
}

/** In every mode, and for super-admins too: the file would undo the change at the next start. */
function notFromConfig(existing: ScopedResource): Decision {
  return existing.creationType === 'CONFIG'
    ? deny('access/config-created', { reason: 'config-created' })
    : allow('all-passed');
}

/**
 * No claims mean open to every signed-in caller, so a team that drops its last claim would publish the resource to all
 * the others. Only a super-admin may.
 */
function keepsAClaim(authority: Authority, existing: RawClaims, next: Claims): Decision {
  return unlessExempt(authority, () =>
    asksForNothing(next) && !isUnlabeled(existing)
      ? deny('access/last-claim', { reason: 'last-claim-dropped' })
      : allow('claims-covered'),
  );
}
