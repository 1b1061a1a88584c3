import { isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Clock } from '@skep/core/time/clock.ts';

/** How often something may be done. */
export interface Rate {
  /** Times per second in the long run; may be below 1. */
  readonly perSecond: number;
  /** Times at once after a pause; at least 1. */
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  /** Milliseconds since the epoch. */
  at: number;
}

// Whoever is forgotten starts with a full bucket, so forgetting never locks anyone out.
const MAX_KEYS = 50_000;

/** A token bucket for each key. The rate may be another one each time. */
export class TokenBuckets {
  readonly #buckets = new LRUCache<string, Bucket>({ max: MAX_KEYS });
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whole seconds to wait until it may be done again (RFC 9110 §10.2.3); 0 where it may be done now, which is then counted. */
  take(key: string, { perSecond, burst }: Rate): number {
    const now = this.#clock.now();
    const { tokens: before, at } = this.#buckets.get(key) ?? { tokens: burst, at: now };
    const passed = Math.max(0, now - at) / 1000;
    const tokens = Math.min(burst, before + passed * perSecond);
    const isAdmitted = tokens >= 1;
    this.#buckets.set(key, { tokens: isAdmitted ? tokens - 1 : tokens, at: now });
    return isAdmitted ? 0 : Math.ceil((1 - tokens) / perSecond);
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
