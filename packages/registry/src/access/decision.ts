import type { UncoveredClaim } from '@skep/auth/claims/covers.ts';
import type { Role, RoleTrace } from '@skep/auth/claims/roles.ts';
import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

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

/** Throws the error of a refusal. `message` replaces the code's own text, for answers that name the resource. */
export function enforce(decision: Decision, message?: string): void {
  if (decision.allowed) return;
  throw new SkepError(decision.code, {
    ...(message === undefined ? {} : { message }),
    detail: { reason: decision.reason },
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

/** Words for some refusals, where the answer names the resource; all others keep the text of their code. */
export type RefusalWords = Readonly<Partial<Record<Deny['reason'], string>>>;

/** Throws the error of a refusal. */
export function enforceWith(decision: Decision, words: RefusalWords): void {
  enforce(decision, decision.allowed ? undefined : words[decision.reason]);
}
