import { NO_CLAIMS } from '@skep/auth/claims/claims.ts';
import type { Authority } from '../../../access/authority.ts';
import { enforce } from '../../../access/decision.ts';
import { decideClaimsGiven } from '../../../access/publish-rules.ts';
import type { JsonBody } from '../json-body.ts';

/** Said before anything is said about the claims or the document themselves (docs/behaviour/registry.md#publishing). */
export function requireClaims(authority: Authority, { value }: JsonBody): void {
  if (Object.hasOwn(value, 'claims')) return;
  enforce(decideClaimsGiven(authority, NO_CLAIMS));
}
