import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { KeptSignIn, SignInServices, SignInTarget, SignInWay } from './port.ts';

/** Signs in. What it gives is not kept yet; the caller stores it. */
export async function signIn(
  target: SignInTarget,
  way: SignInWay,
  services: SignInServices,
): Promise<KeptSignIn> {
  void services;
  throw new SkepError('usage/not-available', { message: `signing in to ${target.resource} by ${way}` });
}
