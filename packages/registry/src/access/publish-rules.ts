import { asksForNothing, type Claims, type RawClaims } from '@skep/auth/claims/claims.ts';
import { firstDifference } from '@skep/auth/claims/same.ts';
import type { Authority } from './authority.ts';
import {
  allow,
  coversNew,
  type Decision,
  deny,
  denyIf,
  firstRefusal,
  readDecision,
  satisfiesExisting,
  unlessExempt,
} from './decision.ts';

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
  const { claims, target, entry } = request;
  return firstRefusal([
    () => decideClaimsGiven(authority, claims),
    () => coversNew(authority, claims),
    () => denyIf(target === undefined, 'access/no-managed-source', { reason: 'no-managed-source' }),
    () => satisfiesTarget(authority, request),
    () => sameAsFirstVersion(request),
    () => denyIf(entry?.hasVersion === true, 'access/version-exists', { reason: 'version-taken' }),
  ]);
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
  return denyIf(required && asksForNothing(claims), 'access/claims-required', { reason: 'claims-omitted' });
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

function staysLabeled(authority: Authority, next: Claims): Decision {
  return unlessExempt(authority, (caller) =>
    denyIf(caller.switches.unlabeled === 'deny' && asksForNothing(next), 'access/unlabeled', {
      reason: 'unlabeled-is-closed',
    }),
  );
}
