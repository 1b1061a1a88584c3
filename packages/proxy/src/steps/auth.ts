import { localIdentity } from '@skep/auth/token/identity.ts';
import type { Step } from '../call/chain.ts';
import type { Clock } from '@skep/core/time/clock.ts';

/** Without an identity provider everybody is the person who started the proxy; an Authorization header says nothing. */
export const localAuth =
  (osUser: string | undefined, clock: Clock): Step =>
  (call, next) => {
    call.identity = localIdentity(osUser, clock.now());
    return next();
  };
