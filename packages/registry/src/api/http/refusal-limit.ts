import type { TokenVerifier } from '@skep/auth/token/verifier.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { rateLimited } from './rate-limit.ts';
import { TokenBuckets, addressKey, type Rate } from './token-buckets.ts';

/**
 * Bounds how many tokens from one address are refused: when there were too many, further ones are not looked at for a
 * while. A token counts before it is checked and no more when it is good, so that many at once cannot slip through; one
 * that is known to be good never counts.
 */
export class RefusalLimit {
  readonly #buckets: TokenBuckets;
  readonly #rate: () => Rate;

  constructor(rate: () => Rate, clock: Clock) {
    this.#rate = rate;
    this.#buckets = new TokenBuckets(clock);
  }

  /** The verifier for requests from this address. It fails with `registry/rate-limited` beyond the rate. */
  guard(verifier: TokenVerifier, address: string | undefined): Pick<TokenVerifier, 'known' | 'verify'> {
    return {
      known: (token) => {
        const known = verifier.known(token);
        if (known?.kind === 'invalid') this.#count(addressKey(address));
        return known;
      },
      verify: async (token) => {
        const key = addressKey(address);
        this.#count(key);
        const outcome = await verifier.verify(token);
        if (outcome.kind !== 'invalid') this.#buckets.giveBack(key);
        return outcome;
      },
    };
  }

  #count(key: string): void {
    const wait = this.#buckets.take(key, this.#rate());
    if (wait > 0) throw rateLimited(wait);
  }
}
