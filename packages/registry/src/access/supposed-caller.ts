import type { RawClaims } from '@skep/auth/claims/claims.ts';
import { tokenIdentity } from '@skep/auth/token/token-identity.ts';
import { ANONYMOUS, type Authority, authorityOf, type AccessMode } from './authority.ts';

/** The authority of a caller whose token carried these claims. For explaining: nobody is let in by it. */
export function supposedCaller(mode: AccessMode, claims: RawClaims): Authority {
  if (mode.kind === 'anonymous') return ANONYMOUS;
  const subject = claims['sub'];
  return authorityOf(mode, tokenIdentity(claims, typeof subject === 'string' ? subject : ''));
}

/** The mode in which an authority was worked out. */
export function modeOf(authority: Authority): AccessMode {
  if (authority.kind === 'anonymous') return { kind: 'anonymous' };
  if (authority.kind === 'signed-in') return { kind: 'auth-only' };
  return { kind: 'full', rules: authority.rules, switches: authority.switches };
}
