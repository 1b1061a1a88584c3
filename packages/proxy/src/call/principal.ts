import type { Identity } from '@skep/auth/token/identity.ts';

/** Who owns a session; anybody else gets "Session not found". */
export function principalOf({ issuer, subject }: Identity): string {
  return JSON.stringify([issuer, subject]);
}
