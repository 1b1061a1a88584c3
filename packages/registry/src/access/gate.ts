import type { RawClaims } from '@skep/auth/claims/claims.ts';
import { type Role, traceRole } from '@skep/auth/claims/roles.ts';
import type { Authority } from './authority.ts';
import { allow, type Decision, deny } from './decision.ts';
import { satisfiesExisting, unlessExempt } from './satisfies.ts';

/**
 * The registry gate of the consumer API: 403 before anything of the registry is read (specification §3.5). Claims that
 * cannot be read (undefined) are satisfied by nobody.
 */
export function decideGate(authority: Authority, registryClaims: RawClaims | undefined): Decision {
  return registryClaims === undefined
    ? unlessExempt(authority, () => deny('access/insufficient-claims', { reason: 'claims-corrupt' }))
    : satisfiesExisting(authority, registryClaims);
}

/**
 * The role gate of an operation, before body and existence are looked at (specification §2.6.0). superAdmin satisfies
 * every role.
 */
export function decideRole(authority: Authority, role: Role): Decision {
  return unlessExempt(authority, (caller) =>
    caller.roles.includes(role)
      ? allow('role-held')
      : deny('access/forbidden', {
          reason: 'role-missing',
          role,
          trace: traceRole(caller.identity.claims, caller.rules, role),
        }),
  );
}
