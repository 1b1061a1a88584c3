import type { Clock } from '@skep/core/time/clock.ts';
import type { Call } from '../call/call.ts';
import { principalOf } from '../call/principal.ts';
import { refuse } from '../call/refuse.ts';
import { idOf, memberAt } from '../message/json-rpc.ts';
import type { Part, PartServices } from './part.ts';

/** A bucket that is full at first, and full again after a period in which nothing was taken. */
export interface BucketSettings {
  readonly maxTokens: number;
  readonly refillMs: number;
}

interface Limits {
  /** For all callers together. */
  readonly shared?: BucketSettings | undefined;
  /** For each caller. */
  readonly perUser?: BucketSettings | undefined;
}

/** How often tools may be called (docs/behaviour/proxy.md#rate-limits). */
export interface RateLimitSettings extends Limits {
  /** Beside what holds for all tools; by the server's own names. */
  readonly tools?: readonly (Limits & { readonly name: string })[] | undefined;
}

/** Callers whose buckets are kept; those of the callers that were away longest go first, and are full when these return. */
const MAX_BUCKETS = 100_000;

interface Bucket {
  tokens: number;
  /** By the clock that never goes back. */
  at: number;
}

/** Buckets of one kind: one for all, or one for each caller. */
class Buckets {
  readonly #settings: BucketSettings;
  readonly #clock: Pick<Clock, 'elapsed'>;
  readonly #buckets = new Map<string, Bucket>();

  constructor(settings: BucketSettings, clock: Pick<Clock, 'elapsed'>) {
    this.#settings = settings;
    this.#clock = clock;
  }

  /** Milliseconds until there is a token; 0 where there is one. */
  wait(key: string): number {
    const { maxTokens, refillMs } = this.#settings;
    const { tokens } = this.#filled(key);
    return tokens >= 1 ? 0 : ((1 - tokens) * refillMs) / maxTokens;
  }

  take(key: string): void {
    const bucket = this.#filled(key);
    bucket.tokens -= 1;
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > MAX_BUCKETS && oldest !== undefined) this.#buckets.delete(oldest);
  }

  #filled(key: string): Bucket {
    const { maxTokens, refillMs } = this.#settings;
    const now = this.#clock.elapsed();
    const bucket = this.#buckets.get(key) ?? { tokens: maxTokens, at: now };
    bucket.tokens = Math.min(maxTokens, bucket.tokens + ((now - bucket.at) * maxTokens) / refillMs);
    bucket.at = now;
    return bucket;
  }
}

/** The row `rate-limit`: a call of a tool takes a token out of every bucket that is about it, or out of none. */
export function openRateLimit(settings: RateLimitSettings, { clock }: Pick<PartServices, 'clock'>): Part {
  const all = bucketsOf(settings, clock);
  const ofTools = new Map((settings.tools ?? []).map((tool) => [tool.name, bucketsOf(tool, clock)]));
  return {
    steps: {
      async 'rate-limit'(call, next) {
        const tool = calledTool(call);
        if (tool !== undefined) {
          const user = call.identity === undefined ? '' : principalOf(call.identity);
          const about = [...all, ...(ofTools.get(tool) ?? [])].map(({ buckets, perUser }) => ({
            buckets,
            key: perUser ? user : '',
          }));
          const wait = Math.max(0, ...about.map(({ buckets, key }) => buckets.wait(key)));
          if (wait > 0) {
            refuseFor(call, wait);
            return;
          }
          for (const { buckets, key } of about) buckets.take(key);
        }
        await next();
      },
    },
  };
}

interface Kind {
  readonly buckets: Buckets;
  readonly perUser: boolean;
}

function bucketsOf({ shared, perUser }: Limits, clock: Pick<Clock, 'elapsed'>): readonly Kind[] {
  return [
    ...(shared === undefined ? [] : [{ buckets: new Buckets(shared, clock), perUser: false }]),
    ...(perUser === undefined ? [] : [{ buckets: new Buckets(perUser, clock), perUser: true }]),
  ];
}

/** Undefined for what is no call of a tool, and for what the process that hosts the proxy asks. */
function calledTool({ incoming, isOwn }: Call): string | undefined {
  const message = incoming?.message;
  if (message === undefined || isOwn || message.kind === 'response' || message.method !== 'tools/call')
    return undefined;
  const name = memberAt(message.value, ['params', 'name']);
  return typeof name === 'string' ? name : '';
}

function refuseFor({ res, incoming }: Call, waitMs: number): void {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
  refuse(res, 'proxy/rate-limited', {
    id: incoming && idOf(incoming.message),
    data: { retryAfterSeconds },
    headers: { 'Retry-After': `${retryAfterSeconds}` },
  });
}
