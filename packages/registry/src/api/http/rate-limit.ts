import { isIPv6 } from 'node:net';
import type { TokenVerifier } from '@skep/auth/token/verifier.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { LRUCache } from 'lru-cache';
import type { Authority } from '../../access/authority.ts';
import type { Run } from './request.ts';

/** How often something may be done. */
export interface Rate {
  /** Times per second in the long run; may be below 1. */
  readonly perSecond: number;
  /** Times at once after a pause; at least 1. */
  readonly burst: number;
}

/**
 * A token bucket for each caller: the subject of the token, or the address where nobody signs in. Refuses with 429 and
 * `Retry-After`. Every process counts for itself. The rate may change at any time.
 */
export function limitRate(current: () => Rate | undefined, clock: Clock): Run {
  const buckets = new TokenBuckets(clock);
  return ({ authority, socket }) => {
    const rate = current();
    if (rate !== undefined) buckets.take(callerKey(authority, socket.remoteAddress), rate);
    return undefined;
  };
}

/** Two issuers may name the same subject. */
function callerKey(authority: Authority | undefined, address: string | undefined): string {
  if (authority === undefined || authority.kind === 'anonymous') return `address ${addressKey(address)}`;
  const { issuer, subject } = authority.identity;
  return `subject ${JSON.stringify([issuer, subject])}`;
}

/** The verifier for requests from this address. It fails with `registry/rate-limited` beyond the rate. */
export type LimitRefusals = (
  verifier: TokenVerifier,
  address: string | undefined,
) => Pick<TokenVerifier, 'known' | 'verify'>;

/**
 * Bounds how many tokens from one address are refused: when there were too many, further ones are not looked at for a
 * while. A token counts before it is checked and no more when it is good, so that many at once cannot slip through; one
 * that is known to be good never counts.
 */
export function limitRefusals(rate: () => Rate, clock: Clock): LimitRefusals {
  const buckets = new TokenBuckets(clock);
  return (verifier, address) => ({
    known: (token) => {
      const known = verifier.known(token);
      if (known?.kind === 'invalid') buckets.take(addressKey(address), rate());
      return known;
    },
    verify: async (token) => {
      const key = addressKey(address);
      buckets.take(key, rate());
      const outcome = await verifier.verify(token);
      if (outcome.kind !== 'invalid') buckets.giveBack(key);
      return outcome;
    },
  });
}

interface Bucket {
  tokens: number;
  /** Milliseconds since the epoch. */
  at: number;
}

// Whoever is forgotten starts with a full bucket, so forgetting never locks anyone out.
const MAX_KEYS = 50_000;

/** A token bucket for each key. The rate may be another one each time. */
class TokenBuckets {
  readonly #buckets = new LRUCache<string, Bucket>({ max: MAX_KEYS });
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts one more. Fails with `registry/rate-limited` and the whole seconds to wait (RFC 9110 §10.2.3). */
  take(key: string, { perSecond, burst }: Rate): void {
    const now = this.#clock.now();
    const { tokens: before, at } = this.#buckets.get(key) ?? { tokens: burst, at: now };
    const passed = Math.max(0, now - at) / 1000;
    const tokens = Math.min(burst, before + passed * perSecond);
    const isAdmitted = tokens >= 1;
    this.#buckets.set(key, { tokens: isAdmitted ? tokens - 1 : tokens, at: now });
    if (isAdmitted) return;
    const retryAfterSeconds = Math.ceil((1 - tokens) / perSecond);
    throw new SkepError('registry/rate-limited', { detail: { retryAfterSeconds } });
  }

  /** What was counted turned out not to be what is counted. */
  giveBack(key: string): void {
    const bucket = this.#buckets.get(key);
    if (bucket !== undefined) bucket.tokens += 1;
  }
}

const MAPPED = '::ffff:';
const GROUPS = 8;

/**
 * What counts as one address where requests are counted: of IPv6 the first 64 bits, because whoever has one address of such
 * a network has all of them (RFC 7421), and otherwise each would be somebody new.
 */
export function addressKey(address = ''): string {
  if (!isIPv6(address)) return address;
  if (address.startsWith(MAPPED) && address.includes('.')) return address.slice(MAPPED.length);
  const [plain = ''] = address.split('%');
  const [front = '', back] = plain.split('::');
  const head = groupsOf(front);
  const missing = back === undefined ? 0 : GROUPS - head.length - groupsOf(back).length;
  const groups = [...head, ...Array.from({ length: missing }, () => '0'), ...groupsOf(back ?? '')];
  return `${groups.slice(0, GROUPS / 2).join(':')}::/64`;
}

/** An IPv4 address at the end stands for two. */
function groupsOf(text: string): string[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => (group.includes('.') ? [group, ''] : group));
}
