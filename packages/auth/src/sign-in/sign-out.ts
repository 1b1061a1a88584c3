import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { KeptSignIn, SignInServices } from './port.ts';

/** Withdraws the tokens at the authorization server (RFC 7009), where it can. */
export async function signOut(
  kept: KeptSignIn,
  services: Pick<SignInServices, 'fetch' | 'signal'>,
): Promise<void> {
  void services;
  throw new SkepError('usage/not-available', { message: `signing out of ${kept.resource}` });
}
