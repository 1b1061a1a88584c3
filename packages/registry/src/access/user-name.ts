import type { Identity } from '@skep/auth/token/identity.ts';

/** What people call the caller, for logs: address, user name or name, whichever the token has first; else empty. */
export function userName({ email, name, claims }: Identity): string {
  const preferred = claims['preferred_username'];
  return email || (typeof preferred === 'string' ? preferred : '') || name;
}
