import { localIdentity } from '@skep/auth/token/identity.ts';
import type { Step } from '../call/chain.ts';
import type { Clock } from '@skep/core/time/clock.ts';

/** Without an identity provider everybody is the person who started the proxy; an Authorization header says nothing. */
export function localAuth(osUser: string | undefined, clock: Clock): Step {
  return (call, next) => {
    call.identity = localIdentity(osUser, clock.now());
    return next();
  };
}
