import type { RawClaims } from '@skep/auth/claims/claims.ts';
import { traceRole, type Role } from '@skep/auth/claims/roles.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Authority } from './authority.ts';
import { allow, deny, satisfiesExisting, unlessExempt, type Decision } from './decision.ts';

/**
 * The registry gate of the consumer API: 403 before anything of the registry is read
 * (docs/behaviour/registry.md#order-of-checks). Claims that cannot be read (undefined) are satisfied by nobody.
 */
export function decideGate(authority: Authority, registryClaims: RawClaims | undefined): Decision {
  return registryClaims === undefined
    ? unlessExempt(authority, () => deny('access/insufficient-claims', { reason: 'claims-corrupt' }))
    : satisfiesExisting(authority, registryClaims);
}

/** Lets a caller who passes the gate go on; 403 for everyone else. */
export function enterGate(authority: Authority, registryClaims: RawClaims | undefined): void {
  const decision = decideGate(authority, registryClaims);
  if (decision.allowed) return;
  throw new SkepError(decision.code, {
    message: 'forbidden: insufficient claims for registry',
    detail: { reason: decision.reason, layer: 'gate' },
  });
}

/**
 * The role gate of an operation, before body and existence are looked at (docs/behaviour/registry.md#roles). superAdmin
 * satisfies every role.
 */
export function decideRole(authority: Authority, role: Role): Decision {
  return unlessExempt(authority, (caller) =>
    caller.roles.includes(role)
      ? allow('role-held')
      : deny('access/forbidden', {
          reason: 'role-missing',
          role,
          trace: traceRole(caller.identity, caller.rules, role),
        }),
  );
}
