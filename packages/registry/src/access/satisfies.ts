import { isUnlabeled, type Claims, type RawClaims } from '@skep/auth/claims/claims.ts';
import { type ArrayMatch, firstUncovered } from '@skep/auth/claims/covers.ts';
import { type Authority, type FullAuthority, isSuperAdmin } from './authority.ts';
import { allow, type Decision, deny } from './decision.ts';

/** What a resource without claims means to a caller who is no super-admin. */
export type UnlabeledMeans = 'open' | 'closed';

/**
 * The wrapper around every claim check (docs/behaviour/registry.md#claim-containment): without authorization and for
 * super-admins nothing is evaluated, all others go to `check`. A further kind of authority does not compile here, and
 * would be checked.
 */
export function unlessExempt(authority: Authority, check: (caller: FullAuthority) => Decision): Decision {
  if (authority.kind === 'anonymous' || authority.kind === 'signed-in') return allow('authz-off');
  return isSuperAdmin(authority) ? allow('super-admin') : check(authority);
}

/** Does the caller satisfy a registry, source or entry that exists? Direction and meaning of no claims by switch. */
export function satisfiesExisting(authority: Authority, claims: RawClaims): Decision {
  return unlessExempt(authority, (caller) =>
    readDecision(caller, claims, caller.switches.unlabeled === 'open' ? 'open' : 'closed'),
  );
}

/** Are claims about to be written held by the writer? Always all of them; no claims are held by everyone. */
export function coversNew(authority: Authority, claims: Claims): Decision {
  return unlessExempt(authority, (caller) => containment(caller, claims, 'all'));
}

/** The read direction for one caller, with the meaning of no claims given. */
export function readDecision(caller: FullAuthority, claims: RawClaims, unlabeled: UnlabeledMeans): Decision {
  if (!isUnlabeled(claims)) return containment(caller, claims, caller.switches.arrayMatch);
  return unlabeled === 'open'
    ? allow('unlabeled-is-open')
    : deny('access/unlabeled', { reason: 'unlabeled-is-closed' });
}

function containment(caller: FullAuthority, claims: RawClaims, match: ArrayMatch): Decision {
  const uncovered = firstUncovered(caller.identity.claims, claims, match);
  return uncovered === undefined
    ? allow('claims-covered')
    : deny('access/insufficient-claims', { reason: 'claims-not-covered', uncovered });
}
