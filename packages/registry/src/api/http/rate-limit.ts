import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Authority } from '../../access/authority.ts';
import type { Run } from './request.ts';
import { TokenBuckets, addressKey, type Rate } from './token-buckets.ts';

/** How often one caller may ask. */
export type RequestRate = Rate;

/**
 * A token bucket for each caller: the subject of the token, or the address where nobody signs in. Refuses with 429 and
 * `Retry-After`. Every process counts for itself. The rate may change at any time.
 */
export function limitRate(current: () => RequestRate | undefined, clock: Clock): Run {
  const buckets = new TokenBuckets(clock);
  return ({ authority, socket }) => {
    const rate = current();
    const wait = rate === undefined ? 0 : buckets.take(callerKey(authority, socket.remoteAddress), rate);
    if (wait > 0) throw rateLimited(wait);
    return undefined;
  };
}

/** 429 with `Retry-After`. */
export function rateLimited(retryAfterSeconds: number): SkepError {
  return new SkepError('registry/rate-limited', { detail: { retryAfterSeconds } });
}

/** Two issuers may name the same subject. */
function callerKey(authority: Authority | undefined, address: string | undefined): string {
  if (authority === undefined || authority.kind === 'anonymous') return `address ${addressKey(address)}`;
  const { issuer, subject } = authority.identity;
  return `subject ${JSON.stringify([issuer, subject])}`;
}
