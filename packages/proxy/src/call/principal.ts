import type { Identity } from '@skep/auth/token/identity.ts';

/** An identity is the same object for as long as it is known, and asked about several times with each call. */
const principals = new WeakMap<Identity, string>();

/** Who owns a session; anybody else gets "Session not found". */
export function principalOf(identity: Identity): string {
  const known = principals.get(identity);
  if (known !== undefined) return known;
  const principal = JSON.stringify([identity.issuer, identity.subject]);
  principals.set(identity, principal);
  return principal;
}
