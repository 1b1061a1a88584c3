import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { onRequestHookHandler } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { Authority } from '../access/authority.ts';
import type { Clock } from '../sync/clock.ts';

/** How often one caller may ask. */
export interface RequestRate {
  /** Requests per second in the long run; may be below 1. */
  readonly perSecond: number;
  /** Requests at once after a pause; at least 1. */
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  /** Milliseconds since the epoch. */
  at: number;
}

// A caller who is forgotten starts with a full bucket, so forgetting never locks anyone out.
const MOST_CALLERS = 50_000;

/**
 * A token bucket for each caller: the subject of the token, or the address where nobody signs in. Refuses with 429 and
 * `Retry-After` in whole seconds (RFC 9110 §10.2.3). Every process counts for itself. The rate may change at any time.
 */
export function limitRate(current: () => RequestRate | undefined, clock: Clock): onRequestHookHandler {
  const buckets = new LRUCache<string, Bucket>({ max: MOST_CALLERS });
  return (request, reply, done) => {
    const rate = current();
    if (rate === undefined) {
      done();
      return;
    }
    const now = Date.parse(clock.now());
    const key = callerKey(request.authority, request.socket.remoteAddress);
    const bucket = buckets.get(key) ?? { tokens: rate.burst, at: now };
    const passed = Math.max(0, now - bucket.at) / 1000;
    const tokens = Math.min(rate.burst, bucket.tokens + passed * rate.perSecond);
    const admitted = tokens >= 1;
    buckets.set(key, { tokens: admitted ? tokens - 1 : tokens, at: now });
    if (admitted) {
      done();
      return;
    }
    reply.header('retry-after', String(Math.ceil((1 - tokens) / rate.perSecond)));
    done(new SkepError('registry/rate-limited'));
  };
}

/** Two issuers may name the same subject. */
function callerKey(authority: Authority | undefined, address: string | undefined): string {
  if (authority === undefined || authority.kind === 'anonymous') return `address ${address ?? ''}`;
  const { issuer, subject } = authority.identity;
  return `subject ${JSON.stringify([issuer, subject])}`;
}
