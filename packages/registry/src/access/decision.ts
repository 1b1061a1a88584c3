import { isUnlabeled, type Claims, type RawClaims } from '@skep/auth/claims/claims.ts';
import { firstUncovered, type UncoveredClaim, type ArrayMatch } from '@skep/auth/claims/covers.ts';
import type { Role, RoleTrace } from '@skep/auth/claims/roles.ts';
import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isSuperAdmin, type Authority, type FullAuthority } from './authority.ts';

export type AllowReason =
  /** Anonymous or auth-only mode: nothing is checked. */
  | 'authz-off'
  /** Super-admins pass every claim check. */
  | 'super-admin'
  | 'role-held'
  /** The resource carries no claims and that means open. */
  | 'unlabeled-is-open'
  | 'claims-covered'
  /** Every check of an ordered list passed. */
  | 'all-passed';

/** Why not. Shown by `explain` only: what a refused caller hears is the text of `code`. */
export type DenyCause =
  | { readonly reason: 'role-missing'; readonly role: Role; readonly trace: RoleTrace }
  | { readonly reason: 'claims-not-covered'; readonly uncovered: UncoveredClaim }
  /** The stored claims are no claims map: nobody satisfies them. */
  | { readonly reason: 'claims-corrupt' }
  | { readonly reason: 'unlabeled-is-closed' }
  | { readonly reason: 'last-claim-dropped' }
  | { readonly reason: 'config-created' }
  | { readonly reason: 'claims-omitted' }
  | { readonly reason: 'claims-differ'; readonly key: string }
  | { readonly reason: 'version-taken' }
  | { readonly reason: 'no-managed-source' };

export interface Allow {
  readonly allowed: true;
  readonly reason: AllowReason;
}

/** `cause` says why, `code` how it is answered: the same cause hides a row in one place and forbids a write in another. */
export type Deny = DenyCause & { readonly allowed: false; readonly code: Code };

/** What every access rule returns: enforced by `enforce`, printed by `explain`. */
export type Decision = Allow | Deny;

export function allow(reason: AllowReason): Allow {
  return { allowed: true, reason };
}

export function deny(code: Code, cause: DenyCause): Deny {
  return { allowed: false, code, ...cause };
}

/** A refusal where it is one, else a pass: for one check of several. */
export function denyIf(isRefused: boolean, code: Code, cause: DenyCause): Decision {
  return isRefused ? deny(code, cause) : allow('all-passed');
}

/** Refuses as if the subject did not exist, so that a hidden name cannot be told from a missing one. */
export function hideDenied(decision: Decision): Decision {
  return decision.allowed ? decision : { ...decision, code: 'access/hidden' };
}

/** Words for some refusals, where the answer names the resource; all others keep the text of their code. */
export type RefusalWords = Readonly<Partial<Record<Deny['reason'], string>>>;

/** Throws the error of a refusal, in these words where there are some for it. */
export function enforce(decision: Decision, words: RefusalWords | string = {}): void {
  if (decision.allowed) return;
  const { code, reason } = decision;
  throw new SkepError(code, {
    message: typeof words === 'string' ? words : words[reason],
    detail: { reason },
  });
}

/** The first refusal of checks done in order, or a pass. Later checks are not evaluated after a refusal. */
export function firstRefusal(checks: Iterable<() => Decision>): Decision {
  for (const check of checks) {
    const decision = check();
    if (!decision.allowed) return decision;
  }
  return allow('all-passed');
}

/** What a resource without claims means to a caller who is no super-admin. */
type UnlabeledMeans = 'open' | 'closed';

/**
 * The wrapper around every claim check (docs/behaviour/registry.md#claim-containment): without authorization and for
 * super-admins nothing is evaluated, all others go to `check`. A further kind of authority does not compile here, and
 * would be checked.
 */
export function unlessExempt(authority: Authority, check: (caller: FullAuthority) => Decision): Decision {
  if (authority.kind === 'anonymous' || authority.kind === 'signed-in') return allow('authz-off');
  return isSuperAdmin(authority) ? allow('super-admin') : check(authority);
}

/**
 * Does the caller satisfy a registry, source or entry that exists? Direction and meaning of no claims by
 * switch. An entry without claims may be touched by everyone with the role, else its own publisher could
 * never clean it up; `unlabeled: deny` leaves it to super-admins.
 */
export function satisfiesExisting(authority: Authority, claims: RawClaims): Decision {
  return unlessExempt(authority, (caller) =>
    readDecision(caller, claims, caller.switches.unlabeled === 'open' ? 'open' : 'closed'),
  );
}

/**
 * Are claims about to be written held by the writer? Nobody may make what they could not satisfy themselves:
 * always all of them; no claims are held by everyone.
 */
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
