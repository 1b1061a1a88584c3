import type { ClaimValue } from '@skep/auth/claims/claims.ts';
import { shownClaims, type ClaimSet } from '../../access/claim-set.ts';
import type { Answer } from '../route/route.ts';

type Shown = Readonly<Record<string, ClaimValue>>;

/**
 * For the audit log: the claims that a write found and left, so that whoever widened the access to something can be
 * found (docs/behaviour/registry.md#administration). Nothing is said where they are the same; something new has no
 * claims before.
 */
export function claimsChange(before: ClaimSet | undefined, after: ClaimSet): Pick<Answer, 'facts'> {
  if (before === after) return {};
  const shown = (set: ClaimSet): Shown => shownClaims(set) ?? {};
  return {
    facts: {
      ...(before === undefined ? {} : { claims_before: shown(before) }),
      claims_after: shown(after),
    },
  };
}
