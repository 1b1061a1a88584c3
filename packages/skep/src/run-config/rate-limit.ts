import { parseDuration } from '@skep/core/time/duration.ts';
import type { BucketSettings, RateLimitSettings } from '@skep/proxy/steps/rate-limit.ts';
import type { RateLimits } from '../settings/rate-limit.ts';

/** What the proxy limits; undefined where nothing is limited. */
export function rateLimitOf(saved: RateLimits | undefined): RateLimitSettings | undefined {
  if (saved === undefined) return undefined;
  const { tools = [] } = saved;
  return { ...limitsOf(saved), tools: tools.map((one) => ({ name: one.name, ...limitsOf(one) })) };
}

function limitsOf({ shared, perUser }: Pick<RateLimits, 'shared' | 'perUser'>) {
  return { shared: bucketOf(shared), perUser: bucketOf(perUser) };
}

function bucketOf(saved: RateLimits['shared']): BucketSettings | undefined {
  return saved && { maxTokens: saved.maxTokens, refillMs: parseDuration(saved.refillPeriod) };
}
