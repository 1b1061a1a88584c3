import { asksForNothing, type Claims, type RawClaims } from '@skep/auth/claims/claims.ts';
import { firstDifference } from '@skep/auth/claims/same.ts';
import type { Authority } from './authority.ts';
import { allow, type Decision, deny, firstRefusal } from './decision.ts';
import { coversNew, readDecision, satisfiesExisting, unlessExempt } from './satisfies.ts';

export interface PublishRequest {
  /** `NO_CLAIMS` where the request has none. */
  readonly claims: Claims;
  /** The managed source that would take the entry; absent where there is none. */
  readonly target: { readonly claims: RawClaims } | undefined;
  /** The entry of that name in the target; absent for the first version. */
  readonly entry: { readonly claims: Claims; readonly hasVersion: boolean } | undefined;
}

/**
 * May this be published? The order is that of docs/behaviour/registry.md#publishing, from the claims on; what comes
 * before (role, shape, names) needs no decision about the caller's claims. The last two checks are integrity rules:
 * they hold in every mode and for super-admins, and a mismatch is reported before a taken version.
 */
export function decidePublish(authority: Authority, request: PublishRequest): Decision {
  return firstRefusal([
    () => decideClaimsGiven(authority, request.claims),
    () => coversNew(authority, request.claims),
    () => hasTarget(request),
    () => satisfiesTarget(authority, request),
    () => sameAsFirstVersion(request),
    () => versionIsFree(request),
  ]);
}

/**
 * Deleting a version or reading an entry's claims. An entry without claims may be touched by everyone with the role,
 * else its own publisher could never clean it up; `unlabeled: deny` leaves it to super-admins.
 */
export function decideEntryAccess(authority: Authority, entryClaims: RawClaims): Decision {
  return satisfiesExisting(authority, entryClaims);
}

/** Replacing the claims of an entry and all its versions. Clearing them hides it; `unlabeled: deny` refuses that. */
export function decideRelabel(authority: Authority, existing: RawClaims, next: Claims): Decision {
  return firstRefusal([
    () => coversNew(authority, next),
    () => satisfiesExisting(authority, existing),
    () => staysLabeled(authority, next),
  ]);
}

/** Part of full authorization, so it binds super-admins and nobody in the other modes. */
export function decideClaimsGiven(authority: Authority, claims: Claims): Decision {
  const required = authority.kind === 'full' && authority.switches.requirePublishClaims;
  return required && asksForNothing(claims)
    ? deny('access/claims-required', { reason: 'claims-omitted' })
    : allow('all-passed');
}

function hasTarget(request: PublishRequest): Decision {
  return request.target === undefined
    ? deny('access/no-managed-source', { reason: 'no-managed-source' })
    : allow('all-passed');
}

/** A managed source without claims then belongs to super-admins. */
function satisfiesTarget(authority: Authority, { target }: PublishRequest): Decision {
  return unlessExempt(authority, (caller) =>
    caller.switches.managedSourceGate && target !== undefined
      ? readDecision(caller, target.claims, 'closed')
      : allow('all-passed'),
  );
}

/** Omission included: later versions without claims do not match a first version with claims, nor the reverse. */
function sameAsFirstVersion({ claims, entry }: PublishRequest): Decision {
  const key = entry === undefined ? undefined : firstDifference(entry.claims, claims);
  return key === undefined
    ? allow('all-passed')
    : deny('access/claims-mismatch', { reason: 'claims-differ', key });
}

function versionIsFree({ entry }: PublishRequest): Decision {
  return entry?.hasVersion === true
    ? deny('access/version-exists', { reason: 'version-taken' })
    : allow('all-passed');
}

function staysLabeled(authority: Authority, next: Claims): Decision {
  return unlessExempt(authority, (caller) =>
    caller.switches.unlabeled === 'deny' && asksForNothing(next)
      ? deny('access/unlabeled', { reason: 'unlabeled-is-closed' })
      : allow('all-passed'),
  );
}
